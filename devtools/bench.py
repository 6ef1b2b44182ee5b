"""``python -m devtools bench``: the benchmark, in the sandbox."""

from __future__ import annotations

import importlib


def main(arguments: list[str]) -> int:
    """Run ``benchmarks``, which stands beside this package and knows nothing of it."""
    return int(importlib.import_module("benchmarks.cli").main(arguments))
