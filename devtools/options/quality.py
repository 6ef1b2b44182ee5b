"""The command line of ``quality``; the benchmark has it, since it knows its models."""

from benchmarks.quality.options import parse

__all__ = ["parse"]
