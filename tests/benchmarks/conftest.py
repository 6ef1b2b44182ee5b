"""The benchmark as a package of the pack, in the process that has ComfyUI already."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.gpu_attention import take_pytorch_attention

from benchmarks.speed import cli
from benchmarks.speed.results import Results


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    """Everything on narrow models: the folder that it left, and its results read back.

    With the attention that the command takes by itself; the one that ComfyUI takes on a CPU breaks
    a compiled model into many graphs.
    """
    out = tmp_path_factory.mktemp("quick")
    threads = torch.get_num_threads()
    try:
        with pytest.MonkeyPatch.context() as patch:
            take_pytorch_attention(patch)
            assert cli.main(["all", "--quick", "--out", str(out)]) == 0
    finally:
        torch.set_num_threads(threads)
    return out, Results.read(out)
