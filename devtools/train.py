"""``python -m devtools train``: makes the small models of the benchmark, in the sandbox."""

from __future__ import annotations

from benchmarks.training import cli

from . import cache


def main(arguments: list[str]) -> int:
    """Run ``benchmarks.training``, which stands beside this package and knows nothing of it."""
    return int(cli.main(arguments, cache.folder() / "emoji"))
