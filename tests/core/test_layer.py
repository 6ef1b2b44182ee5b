"""How much work a GPU must have for a reduction to pay."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from support.layers import LayerTokens, plan_layer
from support.share_read import share_read
from token_merge.tome_core import (
    DownsampleSettings,
    Draws,
    Layer,
    MergeSettings,
    Skipped,
    Stream,
    TokenGrid,
)
from token_merge.tome_core import layer as layers
from token_merge.tome_core.constants import forget_constants
from token_merge.tome_core.faster_forms import FORMS, Form

GPU = torch.device("cuda", 5)
SD15, SDXL = 320, 640


@pytest.fixture
def gpu(monkeypatch):
    """Names the GPU that is there."""

    def put(processors, major, minor, name="", hip=None):
        of_gpu = SimpleNamespace(
            multi_processor_count=processors,
            major=major,
            minor=minor,
            name=name,
            gcnArchName=name,
        )
        monkeypatch.setattr(torch.version, "hip", hip)
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


GEFORCE = "NVIDIA GeForce RTX "


@pytest.mark.parametrize(
    ("name", "processors", "capability", "tflops"),
    [
        ("NVIDIA H100 80GB HBM3", 132, (9, 0), 989),
        ("NVIDIA A100-SXM4-80GB", 108, (8, 0), 312),
        ("NVIDIA B200", 148, (10, 0), 2250),
        ("NVIDIA B300 SXM6 AC", 148, (10, 3), 2250),
        ("NVIDIA H20", 78, (9, 0), 148),
        ("NVIDIA H200", 132, (9, 0), 989),
        ("NVIDIA L4", 58, (8, 9), 121),
        ("NVIDIA L40", 142, (8, 9), 181),
        ("NVIDIA L40S", 142, (8, 9), 362),
        ("NVIDIA RTX A6000", 84, (8, 6), 155),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 188, (12, 0), 504),
        ("Tesla V100-SXM2-16GB", 80, (7, 0), 125),
        ("Tesla T4", 40, (7, 5), 65),
        (GEFORCE + "2080 Ti", 68, (7, 5), 53.8),
        (GEFORCE + "3060", 28, (8, 6), 25.6),
        (GEFORCE + "3090", 82, (8, 6), 71),
        (GEFORCE + "4090", 128, (8, 9), 165),
        (GEFORCE + "5090", 170, (12, 0), 209.5),
    ],
    ids=str,
)
def test_gpus_compute_what_their_data_sheets_say(name, processors, capability, tflops, gpu):
    """In half precision, added up in single precision."""
    gpu(processors, *capability, name)
    assert layers.find_least("merging", GPU) / 3e11 == pytest.approx(tflops / 989, rel=0.05)


@pytest.mark.parametrize(
    ("name", "processors", "capability", "tflops"),
    [
        ("gfx90a:sramecc+:xnack-", 104, (9, 0), 181),
        ("gfx906:sramecc-:xnack-", 60, (9, 0), 26.5),
        ("gfx908", 120, (9, 0), 184.6),
        ("gfx942:sramecc+:xnack-", 304, (9, 4), 1307),
        ("gfx950:sramecc+:xnack-", 256, (9, 5), 2517),
        ("gfx1010", 20, (10, 1), 19.5),
        ("gfx1030", 40, (10, 3), 46),
        ("gfx1100", 48, (11, 0), 123),
        ("gfx1201", 32, (12, 0), 195),
    ],
)
def test_gpus_of_amd_are_known_by_their_architecture(name, processors, capability, tflops, gpu):
    """Their compute capabilities are those of other GPUs of NVIDIA's."""
    gpu(processors, *capability, name, hip="6.4")
    assert layers.find_least("merging", GPU) / 3e11 == pytest.approx(tflops / 989, rel=0.1)


@pytest.mark.parametrize(("name", "hip"), [("another", None), ("gfx1250", "7.2")])
def test_an_unknown_gpu_needs_less_work_than_an_h100(name, hip, gpu):
    gpu(100, 13, 0, name, hip)
    assert 0 < layers.find_least("merging", GPU) < 3e11


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
    assert (not layer.layer.why_no_gain("merging")) == merging
    assert (not layer.layer.why_no_gain("downsampling")) == downsampling


def flux_beside(pair_time, side, device=GPU):
    """At 16 times the side, with local windows. Also the share of all pairs that they read."""
    stream = Stream(TokenGrid(side, side), before=512)
    backend = layers.BackendSpeed("SageAttention", pair_time)
    layer = Layer(stream, device, channels=3072, local_window=12, backend=backend)
    return layer, share_read(stream)


@pytest.fixture
def kernel(monkeypatch):
    """Says why our kernel of windows does not run, empty at first."""
    reason = [""]
    form = Form(lambda: None, lambda *_: False, lambda *_: reason[0])
    monkeypatch.setitem(FORMS, "windows.attend", form)
    return reason


@pytest.mark.parametrize("kind", ["merging", "downsampling"])
@pytest.mark.parametrize(
    ("side", "pair_time", "faster"),
    [
        (64, 1.0, ""),
        (64, 0.75, ""),
        (64, 0.33, "SageAttention computes 4,608 tokens faster"),
        (96, 0.33, ""),
        (128, 0.33, ""),
        (128, 0.2, "SageAttention computes 16,896 tokens faster"),
    ],
)
def test_windows_that_are_slower_than_all_pairs_are_left_to_the_backend(
    kind, side, pair_time, faster, gpu, kernel
):
    """On an RTX 4090 SageAttention 2 takes 0.33 of the time of FlashAttention 2."""
    gpu(128, 8, 9, GEFORCE + "4090")
    layer, share = flux_beside(pair_time, side)
    assert layer.why_backend_is_faster(kind, share) == faster


def test_windows_in_pytorch_lose_where_those_of_our_kernel_do_not(gpu, kernel):
    gpu(128, 8, 9, GEFORCE + "4090")
    layer, share = flux_beside(0.33, 128)
    assert not layer.why_backend_is_faster("downsampling", share)
    kernel[0] = "Triton is missing"
    assert "16,896 tokens faster" in layer.why_backend_is_faster("downsampling", share)


@pytest.mark.parametrize("side", [64, 96])
def test_windows_in_int8_are_faster_than_those_that_are_exact(side, gpu, kernel):
    gpu(128, 8, 9, GEFORCE + "4090")
    layer, share = flux_beside(0.33, side)
    in_int8 = replace(layer, precision="int8")
    assert in_int8.why_backend_is_faster("downsampling", share) == ""


def test_beside_a_faster_backend_more_work_has_to_be_there(gpu):
    """Fewer keys in the same function save a share of its time, whichever function it is."""
    gpu(132, 9, 0)
    for pair_time, said in (
        (1.0, ""),
        (
            0.3,
            "16,384 tokens are too few to gain; 19,800 are enough on this GPU beside SageAttention",
        ),
    ):
        backend = layers.BackendSpeed("SageAttention", pair_time)
        layer = replace(layer_of(128, SDXL).layer, backend=backend)
        assert layer.why_no_gain("merging") == said


def test_windows_that_save_too_little_are_not_planned(gpu, kernel):
    """They are faster than the backend, but by less than it takes to start them."""
    gpu(132, 9, 0)
    layer, share = flux_beside(0.38, 96)
    assert layer.why_backend_is_faster("downsampling", share) == ""
    few = "9,216 tokens are too few to gain; 11,900 are enough on this GPU beside SageAttention"
    assert layer.why_backend_is_faster("merging", share) == few


def test_on_a_cpu_windows_are_compared_with_nothing():
    layer, share = flux_beside(0.1, 64, torch.device("cpu"))
    assert layer.why_backend_is_faster("merging", share) == ""


def test_a_cpu_reduces_few_tokens_too():
    assert layers.find_least("merging", torch.device("cpu")) == 0
    assert layer_of(8, SD15, torch.device("cpu")).layer.why_no_gain("merging") == ""


@pytest.mark.parametrize("settings", [MergeSettings(), DownsampleSettings()])
def test_a_layer_with_too_little_work_is_not_reduced_and_says_so(settings, gpu):
    gpu(132, 9, 0)
    found = plan_layer(settings, layer_of(64, SD15))
    assert isinstance(found, Skipped)
    assert "4,096 tokens are too few" in found.reason
    assert "are enough on this GPU" in found.reason
