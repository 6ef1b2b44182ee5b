"""The command line of ``bench``; the benchmark has it, since it runs without devtools too."""

from benchmarks.speed.options import parse

__all__ = ["parse"]
