"""``python -m devtools quality``: how much of the picture stays, in the sandbox."""

from __future__ import annotations

import importlib

from . import cache


def main(arguments: list[str]) -> int:
    """Run ``benchmarks.quality``, which stands beside this package and knows nothing of it."""
    command = importlib.import_module("benchmarks.quality.cli")
    return int(command.main(arguments, cache.folder() / "quality"))
