"""Narrow models, ComfyUI's own sampling, and what reaches attention."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from comfy.model_patcher import ModelPatcher
from support.attention_log import AttentionLog
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
def attention_log() -> AttentionLog:
    return AttentionLog()
