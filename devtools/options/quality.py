"""The command line of ``quality``; the benchmark has it, the folder for its files is ours."""

from __future__ import annotations

import argparse

from benchmarks.quality import options

from .. import cache


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options; ends the process on ``--help`` and on a mistake."""
    return options.parse(arguments, cache.folder() / "quality")
