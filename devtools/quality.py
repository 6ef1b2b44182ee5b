"""``python -m devtools quality``: how much of the picture stays, in the sandbox."""

from __future__ import annotations

from benchmarks.quality import cli


def main(arguments: list[str]) -> int:
    """Run ``benchmarks.quality``, which stands beside this package and knows nothing of it."""
    return int(cli.main(arguments))
