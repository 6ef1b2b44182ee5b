"""Beside a faster attention function layers are reduced only where that is faster still."""

from __future__ import annotations

from functools import partial
from importlib import metadata
from pathlib import Path

import comfy.ldm.modules.attention as attention
import pytest
import torch
from support import other_attention as others
from support.other_device_run import put_on_other_device
from support.share_read import share_read
from token_merge.nodes.hooks.attention import backend_speeds
from token_merge.nodes.hooks.attention.backend import Backend
from token_merge.nodes.hooks.attention.backend_speeds import FUNCTIONS, find_function, find_speed
from token_merge.nodes.hooks.attention.override_table import ENTRIES
from token_merge.nodes.hooks.attention.overrides import Override
from token_merge.tome_core import Layer, Stream, TokenGrid
from token_merge.tome_core import layer as payoff
from token_merge.tome_core.gpus import H100_MULTIPROCESSORS, OF_GEFORCE

from benchmarks.markdown import write_table
from benchmarks.speed.documents import TRANSFORMERS
from benchmarks.speed.inputs import CUDA_CLIPS

GPU, HALF = torch.device("cuda"), torch.float16


@pytest.fixture
def gpu(monkeypatch):
    """As if there were a GPU of this capability, and this SageAttention; none: it is missing."""

    def put(capability, sage="2.2.0"):
        def find(name):
            if name != "sageattention" or sage is None:
                raise metadata.PackageNotFoundError
            return sage

        monkeypatch.setattr(metadata, "version", find)
        monkeypatch.setattr(backend_speeds, "find_capability", lambda device: capability)
        backend_speeds._read_sage_times.cache_clear()

    yield put
    backend_speeds._read_sage_times.cache_clear()


@pytest.mark.parametrize(
    ("name", "capability", "sage", "pair_time"),
    [
        ("attention_sage", (8, 9), "2.2.0", 0.33),
        ("sageattn", (8, 9), "2.1.1+cu128torch2.7", 0.33),
        ("sageattn", (8, 9), "1.0.6", 0.52),
        ("sageattn", (8, 9), "3.0", 1.0),
        ("sageattn", (8, 9), "unknown", 1.0),
        ("sageattn", (8, 9), None, 1.0),
        ("sageattn", (7, 5), "2.2.0", 1.0),
        ("attention3_sage", (12, 0), None, 0.2),
        ("attention_comfy_kitchen_int8", (12, 0), None, 0.4),
        ("attention_flash", (12, 0), None, 1.0),
        ("attention_of_tomorrow", (12, 0), None, 1.0),
    ],
)
def test_functions_are_as_fast_as_was_published_and_as_flashattention_else(
    name, capability, sage, pair_time, gpu
):
    gpu(capability, sage)
    assert find_speed(find_function(name), GPU, HALF, 128).pair_time == pair_time


@pytest.mark.parametrize(("dtype", "channels"), [(torch.float32, 64), (HALF, 256)])
def test_what_sageattention_leaves_to_pytorch_takes_as_long_as_there(dtype, channels, gpu):
    gpu((8, 9))
    found = find_speed(find_function("attention_sage"), GPU, dtype, channels)
    assert (found.name, found.pair_time) == ("PyTorch's attention", 1.0)


@pytest.mark.parametrize("masked", [False, True])
def test_a_masked_call_is_as_fast_as_what_computes_it(masked, gpu):
    """ComfyUI's functions leave masks to PyTorch's attention."""
    gpu((12, 0))
    layer = Layer(Stream(TokenGrid(8, 8)), GPU, masked=masked)
    sage3 = Backend(attention.attention3_sage, None).add_speed(layer, {}).backend
    assert (sage3.pair_time == 1.0) == masked


def test_another_nodes_function_is_as_fast_as_the_one_that_it_is_like(gpu):
    gpu((8, 9))
    layer = Layer(Stream(TokenGrid(8, 8)), GPU)
    for like, pair_time in (("sageattn", 0.33), ("", 1.0)):
        backend = Backend(attention.attention_sage, Override(print, "another node", like))
        assert backend.add_speed(layer, {}).backend.pair_time == pair_time


def test_each_backend_of_the_table_of_overrides_has_a_name():
    for entry in ENTRIES:
        assert entry.like in FUNCTIONS or not entry.like


def test_the_page_about_speed_has_the_time_of_windows_beside_sageattention(gpu, monkeypatch):
    """By the data sheet of an RTX 4090, which has 128 multiprocessors, and our kernel in INT8."""
    gpu((8, 9))
    monkeypatch.setattr(payoff, "why_unavailable", lambda *call: "")
    as_fast = 128 * OF_GEFORCE[8, 9] / H100_MULTIPROCESSORS
    monkeypatch.setattr(payoff, "compare_with_h100", lambda device: as_fast)
    sage = find_speed(find_function("sageattn"), GPU, HALF, 128)
    rows = []
    for shape, clip in zip(TRANSFORMERS, CUDA_CLIPS, strict=True):
        assert (shape.height, shape.width) == (clip.height, clip.width)
        share = share_read(clip.stream)
        layer = Layer(clip.stream, GPU, channels=shape.channels, backend=sage, precision="int8")
        left = layer.why_backend_is_faster("downsampling", share)
        kernels = ("our kernel", "our kernel in INT8")
        times = [f"{share * payoff.PAIR_TIMES[kernel]:.2f}" for kernel in kernels]
        rows.append(
            [shape.name, f"{100 * share:.0f} %", *times, "left to it" if left else "reduced"]
        )
    beside = f"beside SageAttention 2 on an RTX 4090, which takes {sage.pair_time}"
    table = write_table(["local windows", "pairs", "exact", "in INT8", beside], rows)
    page = Path(__file__).parents[2] / "docs" / "speed.md"
    assert table in page.read_text(encoding="utf-8")


PAIR_TIMES = payoff.PAIR_TIMES.copy()


@pytest.fixture
def beside_sage(gpu, monkeypatch):
    """A clone with KJNodes' Patch Sage Attention whose calls are computed on another device."""
    gpu((8, 9))
    monkeypatch.setattr(backend_speeds, "HALF", (torch.float32,))  # of the small models

    def put(model):
        moved = put_on_other_device(others.patch_sage(model), monkeypatch)
        monkeypatch.setattr(payoff, "PAIR_TIMES", PAIR_TIMES)
        return moved

    return put


@pytest.mark.parametrize("kind", ["token_merge", "token_downsample"])
def test_a_node_says_that_sageattention_computes_all_tokens_faster(
    kind, flux, beside_sage, denoise, messages, request
):
    model = beside_sage(request.getfixturevalue(kind)(flux))
    denoise(model, size=(32, 32), steps=1)
    said = "2 layers skipped: SageAttention computes 263 tokens faster (block 0, block 1)"
    assert any(said in line for line in messages())


@pytest.mark.parametrize(
    "inputs",
    [{"local_window": "12"}, {"local_window": "off"}, {"reduce_small_layers": "always"}],
    ids=str,
)
def test_what_is_asked_for_is_reduced_beside_sageattention(
    inputs, flux, token_downsample, beside_sage, denoise, messages
):
    model = beside_sage(token_downsample(flux, **inputs))
    denoise(model, size=(32, 32), steps=1)
    assert any("attention reads" in line for line in messages())


def test_a_unet_needs_more_work_beside_sageattention(
    unet, token_merge, beside_sage, denoise, messages, monkeypatch
):
    sample = partial(denoise, size=(32, 32), steps=1)
    work = 4 * 1024**2 * 32  # of its finest layers
    for share, did in ((0.3, "attention computes"), (0.5, "on this GPU beside SageAttention")):
        before = len(messages())
        model = beside_sage(token_merge(unet("SD15")))
        monkeypatch.setattr(payoff, "LEAST_FLOPS", {"merging": share * work})
        sample(model)
        assert did in " ".join(messages()[before:])
