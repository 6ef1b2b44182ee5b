"""Whole models on a GPU, each setting under each attention function.

Pictures are as near to those of exact attention as numbers of the precision come. Where a function
cannot weigh keys, all weigh alike and the run says so.
"""

from functools import cache

import comfy.ldm.modules.attention as attention
import pytest
import torch
from support.attention_kernels import install_kernels, use_attention
from support.one_head import compute_one_head_at_a_time
from support.other_device_run import put_on_other_device
from support.pairs import cover_pairs
from support.small_models import VIDEOS, SampleRequest
from support.unet_sampling import sample
from support.unets import build_unet
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.random_models import build_model

WAN = VIDEOS[0]
SIZE = (12, 16)
RANDOM = {"ratio": 0.5, "matching": "random", "seed": 1}
SETTINGS = {
    "merge": ("merge", {**RANDOM, "target": "queries, keys and values"}),
    "merge keys": ("merge", {**RANDOM, "target": "keys and values"}),
    "interleaved": ("downsample", {"local_window": "off"}),
    "stratified": ("downsample", {"local_window": "off", "method": "stratified"}),
    "window": ("downsample", {"local_window": "8"}),
}
"""Dst tokens are random, but each other token goes to the most similar one. With seed 0 one token
is about as similar to two, and rounding to float16 decides where it goes."""
BOUNDS = {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 3e-2}
"""The norm of the difference from attention in float64 is at most this share of the picture's."""


@cache
def build(name, dtype):
    wan = name == "Wan"
    return build_model(WAN.config, WAN.settings, dtype=dtype) if wan else build_unet(name, dtype)


def denoise(model, name):
    if name == "Wan":
        return SampleRequest(steps=1).sample(model, family=WAN)
    return sample(model, size=SIZE, steps=1)


def attend_exactly(name):
    """Attention in float64, by a function of this name."""

    def exact(q, k, v, heads, mask=None, skip_reshape=False, skip_output_reshape=False, **_):
        if not skip_reshape:
            q, k, v = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (q, k, v))
        mask = None if mask is None else mask.double()
        out = scaled_dot_product_attention(*(x.double() for x in (q, k, v)), attn_mask=mask)
        out = out if skip_output_reshape else out.transpose(1, 2).flatten(2)
        return out.to(v.dtype)

    exact.__name__ = name
    return attention.wrap_attn(exact)


WEIGHED, ALIKE = attend_exactly("attention_basic"), attend_exactly("attention_of_tomorrow")


def ignore_scale():
    """As ComfyUI's functions were before its pull request 13376."""

    def attention_pytorch(*args, scale=None, **kwargs):
        return attention.attention_pytorch(*args, **kwargs)

    return attention.wrap_attn(attention_pytorch)


def refuse_masks():
    def attention_of_tomorrow(q, k, v, heads, mask=None, **kwargs):
        assert mask is None
        return attention.attention_pytorch(q, k, v, heads, **kwargs)

    return attention.wrap_attn(attention_of_tomorrow)


def take_two_head_sizes(sizes):
    def attention3_sage(q, k, v, heads, mask=None, skip_reshape=False, **kwargs):
        assert mask is None
        assert (q.shape[-1] if skip_reshape else q.shape[-1] // heads) in sizes
        return attention.attention_pytorch(q, k, v, heads, skip_reshape=skip_reshape, **kwargs)

    return attention.wrap_attn(attention3_sage)


UNWEIGHED = {
    "attention_sage",
    "attention_sage of a fork",
    "attention3_sage",
    "refuses masks",
    "64 and 128 only",
}
OF_A_TEST = {
    "ignores scale": ignore_scale(),
    "refuses masks": refuse_masks(),
    "64 and 128 only": take_two_head_sizes({64, 128}),
}


@pytest.fixture(scope="module")
def reduce(token_merge, token_downsample):
    """``reduce(name, setting, dtype)``: a model with one of our nodes."""
    nodes = {"merge": token_merge, "downsample": token_downsample}

    def add_node(name, setting, dtype):
        node, inputs = SETTINGS[setting]
        return nodes[node](build(name, dtype), **inputs)

    return add_node


@pytest.fixture(scope="module")
def expect(reduce):
    """``expect(name, setting, dtype, weighed)``: the picture, computed once."""

    @cache
    def compute(name, setting, dtype, weighed):
        with pytest.MonkeyPatch.context() as patch:
            use_attention(patch, WEIGHED if weighed else ALIKE)
            return denoise(reduce(name, setting, dtype), name)

    return compute


def measure_difference(picture, expected):
    return (picture - expected).norm() / expected.norm()


@pytest.fixture
def check(reduce, expect, monkeypatch, messages):
    """``check(function, name, setting, dtype)``"""

    def compare(function, name, setting, dtype):
        install_kernels(monkeypatch, sage_takes_masks=function.endswith("fork"))
        named = OF_A_TEST.get(function) or getattr(attention, function.split()[0])
        use_attention(monkeypatch, named)
        model = put_on_other_device(reduce(name, setting, dtype), monkeypatch)
        picture = denoise(model, name)
        # Beside no prompt, the kept keys all stand for as many tokens, or are to weigh alike.
        sized = setting.startswith("merge") or (setting != "window" and name.startswith("Flux"))
        alike = function in UNWEIGHED and sized
        assert any("proportional_attention is left out" in each for each in messages()) == alike
        monkeypatch.undo()
        error = measure_difference(picture, expect(name, setting, dtype, not alike))
        assert error < BOUNDS[dtype]
        if sized:
            assert error < measure_difference(picture, expect(name, setting, dtype, alike))

    return compare


def can_be(_, name, setting, heads):
    """Heads are computed one at a time in transformers alone, and without a local window."""
    return heads == TOGETHER or not (name.startswith("SD15") or setting == "window")


TOGETHER, ONE_AT_A_TIME = HEADS = ("all heads together", "one head at a time")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("function", "name", "setting", "heads"),
    cover_pairs(
        [
            "attention_pytorch",
            "attention_xformers",
            "attention_basic",
            "attention_split",
            "attention_sub_quad",
            "ignores scale",
            "refuses masks",
        ],
        ["SD15", "Flux", "Wan"],
        SETTINGS,
        HEADS,
        possible=can_be,
    ),
)
def test_single_precision(function, name, setting, heads, check, monkeypatch):
    if heads == ONE_AT_A_TIME:
        compute_one_head_at_a_time(monkeypatch)
    check(function, name, setting, torch.float32)


HALF = cover_pairs(
    [
        ("attention_pytorch", torch.float16),
        ("attention_xformers", torch.bfloat16),
        ("attention_flash", torch.float16),
        ("attention_flash", torch.bfloat16),
        ("attention_sage", torch.float16),
        ("attention_sage of a fork", torch.bfloat16),
        ("attention3_sage", torch.bfloat16),
    ],
    ["SD15 wide", "Flux wide", "Wan"],
    ["merge", "interleaved", "window"],
    HEADS,
    possible=can_be,
)


@pytest.mark.parametrize(
    ("of", "name", "setting", "heads"),
    [
        pytest.param(*case, marks=pytest.mark.thorough if "SD15 wide" in case else ())
        for case in HALF
    ],
    ids=str,
)
def test_half_precision(of, name, setting, heads, check, monkeypatch):
    if heads == ONE_AT_A_TIME:
        compute_one_head_at_a_time(monkeypatch)
    function, dtype = of
    check(function, name, setting, dtype)


@pytest.mark.parametrize("name", ["SD15 wide", "Flux wide"])
@pytest.mark.parametrize("setting", ["merge", "interleaved", "window"])
def test_a_function_with_two_head_sizes_gets_no_other(name, setting, check):
    check("64 and 128 only", name, setting, torch.float32)
