"""How much work a GPU must have for a reduction to pay."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from support.layers import LayerTokens, plan_layer
from token_merge.tome_core import (
    DownsampleSettings,
    Draws,
    MergeSettings,
    Skipped,
    Stream,
    TokenGrid,
)
from token_merge.tome_core import layer as layers
from token_merge.tome_core.constants import forget_constants

GPU = torch.device("cuda", 5)
SD15, SDXL = 320, 640


@pytest.fixture
def gpu(monkeypatch):
    """Names the GPU that is there."""

    def put(processors, major, minor):
        of_gpu = SimpleNamespace(multi_processor_count=processors, major=major, minor=minor)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: of_gpu)
        forget_constants()

    yield put
    forget_constants()


def layer_of(side, channels, device=GPU):
    stream = Stream(TokenGrid(side, side))
    return LayerTokens(
        stream, lambda: torch.rand(1, side**2, 8), Draws((1,), device), channels=channels
    )


def test_a_slower_gpu_needs_less_work(gpu):
    gpu(132, 9, 0)
    h100 = layers.find_least("merging", GPU)
    gpu(128, 8, 9)
    rtx4090 = layers.find_least("merging", GPU)
    gpu(28, 8, 6)
    assert layers.find_least("merging", GPU) < rtx4090 < h100 == 3e11


@pytest.mark.parametrize(
    ("side", "channels", "merging", "downsampling"),
    [
        (64, SD15, False, False),
        (64, SDXL, False, False),
        (96, SD15, False, True),
        (128, SDXL, True, True),
    ],
)
def test_what_pays_on_an_h100_is_what_was_measured(side, channels, merging, downsampling, gpu):
    gpu(132, 9, 0)
    layer = layer_of(side, channels)
    assert (not layer.layer.explain_loss("merging")) == merging
    assert (not layer.layer.explain_loss("downsampling")) == downsampling


def test_a_cpu_reduces_few_tokens_too():
    assert layers.find_least("merging", torch.device("cpu")) == 0
    assert layer_of(8, SD15, torch.device("cpu")).layer.explain_loss("merging") == ""


@pytest.mark.parametrize("settings", [MergeSettings(), DownsampleSettings()])
def test_a_layer_with_too_little_work_is_not_reduced_and_says_so(settings, gpu):
    gpu(132, 9, 0)
    found = plan_layer(settings, layer_of(64, SD15))
    assert isinstance(found, Skipped)
    assert "4096 tokens are too few" in found.reason
    assert "to pay on this GPU" in found.reason
