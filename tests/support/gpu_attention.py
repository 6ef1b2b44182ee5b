"""The attention that ComfyUI takes on a GPU, on every machine."""

from __future__ import annotations

import comfy.ldm.flux.math
import comfy.ldm.modules.attention as attention
import comfy.ldm.wan.model
import pytest

MODULES = (attention, comfy.ldm.flux.math, comfy.ldm.wan.model)


def take_pytorch_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the benchmark of costs does too."""
    for module in MODULES:
        monkeypatch.setattr(module, "optimized_attention", attention.attention_pytorch)
