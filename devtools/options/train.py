"""The command line of ``train``; the benchmark has it, since it runs without devtools too."""

from benchmarks.training.options import parse

__all__ = ["parse"]
