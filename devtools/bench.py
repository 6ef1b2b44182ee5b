"""``python -m devtools bench``: the benchmark, in the sandbox."""

from __future__ import annotations

from benchmarks.speed import cli


def main(arguments: list[str]) -> int:
    """Run ``benchmarks.speed``, which stands beside this package and knows nothing of it."""
    return int(cli.main(arguments))
