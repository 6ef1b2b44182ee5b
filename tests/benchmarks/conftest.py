"""The benchmark as a package of the pack, in the process that has ComfyUI already."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks import cli
from benchmarks.results import Results


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    """Everything on narrow models: the folder that it left, and its results read back."""
    out = tmp_path_factory.mktemp("quick")
    threads = torch.get_num_threads()
    try:
        assert cli.main(["all", "--quick", "--out", str(out)]) == 0
    finally:
        torch.set_num_threads(threads)
    return out, Results.read(out)
