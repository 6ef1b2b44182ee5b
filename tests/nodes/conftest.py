"""Narrow models, ComfyUI's own sampling, and what reaches attention."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
import torch
from comfy.model_patcher import ModelPatcher
from support.attention_log import AttentionLog
from support.gpu_attention import take_pytorch_attention
from support.unet_sampling import sample
from support.unets import build_unet


@pytest.fixture(scope="session")
def unet() -> Callable[..., ModelPatcher]:
    return build_unet


@pytest.fixture(scope="session")
def flux() -> ModelPatcher:
    """The smallest transformer: one block of each kind. More of them are in tests/transformers."""
    return build_unet("Flux")


@pytest.fixture(scope="session")
def denoise() -> Callable[..., torch.Tensor]:
    return sample


@pytest.fixture
def messages(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What the pack has logged in this test so far."""
    caplog.set_level(logging.INFO, logger="token_merge")
    return lambda: [r.getMessage() for r in caplog.records if r.name == "token_merge"]


@pytest.fixture
def attention_log() -> AttentionLog:
    return AttentionLog()


@pytest.fixture
def compiling_as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With the attention of a GPU, and nothing compiled before: the attention of a CPU breaks
    graphs by itself, and each takes time to compile.
    """
    take_pytorch_attention(monkeypatch)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
