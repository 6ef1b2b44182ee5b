"""ComfyUI chooses the attention function; the nodes work under each, and weigh keys as it can."""

import functools
import inspect
import logging
from dataclasses import replace

import comfy.ldm.modules.attention as attention
import pytest
import torch
import torch.nn.functional as F
from support.pairs import cover_pairs
from token_merge.nodes.hooks.attention.backend import Backend
from token_merge.nodes.hooks.attention.call import AttentionCall
from token_merge.nodes.hooks.attention.overrides import Override
from token_merge.nodes.hooks.run.report import RunReport
from token_merge.tome_core.attention import attend_weighed_densely
from token_merge.tome_core.faster_forms import FORMS, Form
from torch._subclasses.fake_tensor import FakeTensorMode

BACKENDS = ["attention_pytorch", "attention_split", "attention_sub_quad", "attention_basic"]
HONOURS_SCALE = '"scale"' in inspect.getsource(attention.attention_split)
"""Older ComfyUI's functions ignore the scale that a model asks for."""
CUDA, CPU = "cuda", "cpu"


def ignore_scale(function):
    """As ComfyUI's functions were before its pull request 13376."""

    @functools.wraps(function)
    def ignoring(*args, scale=None, **kwargs):
        return function(*args, **kwargs)

    return ignoring


def take_head_sizes(function, *sizes):
    """As SageAttention's kernels: few numbers of channels, and no mask."""

    def fixed(q, k, v, heads, mask=None, skip_reshape=False, **kwargs):
        assert mask is None
        assert (q.shape[-1] if skip_reshape else q.shape[-1] // heads) in sizes
        return function(q, k, v, heads, skip_reshape=skip_reshape, **kwargs)

    fixed.__name__ = "attention3_sage"
    return fixed


def test_our_kernel_weighs_keys_in_place_of_pytorchs_attention_without_a_mask_alone(monkeypatch):
    form = Form(attend_weighed_densely, lambda *_: True, lambda device: "", device_type=CPU)
    monkeypatch.setitem(FORMS, "attention.attend_weighed", form)
    q = torch.zeros(1, 2, 4, 64)
    call = AttentionCall(q, q, q, 2, None, True, {})
    ways = {
        name: Backend(getattr(attention, name), None).choose_weighting(call) for name in BACKENDS
    }
    assert ways == {**dict.fromkeys(BACKENDS, "mask"), "attention_pytorch": "kernel"}
    masked = replace(call, mask=torch.zeros(4, 4))
    assert Backend(attention.attention_pytorch, None).choose_weighting(masked) == "mask"


@pytest.mark.parametrize("backend", BACKENDS)
def test_both_nodes_work_under_every_attention(
    backend, unet, token_merge, token_downsample, denoise, monkeypatch
):
    default = [denoise(node(unet("SD15")), steps=1) for node in (token_merge, token_downsample)]
    monkeypatch.setattr(attention, "optimized_attention", getattr(attention, backend))
    other = [denoise(node(unet("SD15")), steps=1) for node in (token_merge, token_downsample)]
    for one, two in zip(default, other, strict=True):
        assert (one - two).norm() / one.norm() < 1e-3


@pytest.mark.parametrize(
    ("way", "backend", "honours_scale", "channels", "asked_scale", "split"),
    cover_pairs(
        ["mask", "channels"],
        BACKENDS,
        [True, False] if HONOURS_SCALE else [False],
        [40, 64, 128],
        [None, 0.1],
        [True, False],
        possible=lambda way, _, honours_scale, __, asked_scale, ___: (
            # Without channels a function that ignores the scale ignores that of the model, too.
            honours_scale or asked_scale is None or way == "channels"
        ),
    ),
)
def test_a_key_of_size_s_weighs_as_s_keys(
    way, backend, honours_scale, channels, asked_scale, split, monkeypatch
):
    function = getattr(attention, backend)
    function = function if honours_scale else ignore_scale(function)
    q, k, v = torch.randn(2, 3, 5, channels), *torch.randn(2, 2, 3, 7, channels)
    sizes = torch.randint(1, 9, (2, 7))
    exact = F.scaled_dot_product_attention(
        *(x.double() for x in (q, k, v)),
        attn_mask=sizes.double().log()[:, None, None],
        scale=asked_scale,
    )
    monkeypatch.setattr(Backend, "choose_weighting", lambda *_: way)
    options = {} if asked_scale is None else {"scale": asked_scale}
    call = AttentionCall(q, k, v, 3, None, skip_output_reshape=split, options=options)
    out = Backend(function, None).run(call, sizes, RunReport()).double()
    expected = exact if split else exact.transpose(1, 2).flatten(2)
    torch.testing.assert_close(out, expected, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "override", "mask", "device", "way"),
    [
        ("attention_pytorch", False, False, CUDA, "channels"),
        ("attention_xformers", False, False, CUDA, "channels"),
        ("attention_flash", False, False, CUDA, "channels"),
        ("attention_flash", False, False, CPU, "channels"),
        ("attention_pytorch", False, True, CUDA, "mask"),
        ("attention_pytorch", False, False, CPU, "mask"),
        ("attention_of_tomorrow", True, False, CPU, "mask"),
        ("attention_of_tomorrow", True, False, CUDA, None),
        ("attention_pytorch", True, False, CUDA, "channels"),
        ("attention_flash", True, False, CUDA, "channels"),
        ("sageattn", True, True, CUDA, None),
        ("attention_comfy_kitchen_int8", True, False, CUDA, "mask"),
        ("attention_sage", False, False, CUDA, None),
        ("attention3_sage", False, False, CPU, None),
        ("attention_comfy_kitchen_int8", False, False, CUDA, "mask"),
        ("attention_of_tomorrow", False, False, CUDA, None),
        ("attention_of_tomorrow", False, True, CUDA, None),
        ("attention_flash", False, True, CUDA, "mask"),
        ("attention_sage", False, True, CUDA, "mask"),
        ("attention3_sage", False, True, CUDA, "mask"),
        ("attention_of_tomorrow", True, True, CUDA, "mask"),
    ],
)
def test_only_functions_that_are_known_to_take_more_get_more(
    name, override, mask, device, way, monkeypatch
):
    monkeypatch.setattr(attention, "SAGE_ATTENTION_SUPPORTS_MASK", False, raising=False)
    assert choose_weighting(name, override, mask, device) == way


def test_sageattention_gets_every_mask_in_a_comfyui_that_does_not_ask_whether_it_takes_one(
    monkeypatch,
):
    monkeypatch.delattr(attention, "SAGE_ATTENTION_SUPPORTS_MASK", raising=False)
    assert choose_weighting("attention_sage", False, True, CUDA) is None


def choose_weighting(name, override, mask, device):
    def function():
        pass

    function.__name__ = "attention_pytorch" if override else name
    unknown = name == "attention_of_tomorrow"
    other_node = Override(function, name, "" if unknown else name) if override else None
    with FakeTensorMode():
        q = torch.empty(1, 1, 5, 64, device=device)
        given = torch.zeros(1, 1, device=device) if mask else None
        call = AttentionCall(q, q, q, 1, given, skip_output_reshape=True, options={})
    return Backend(function, other_node).choose_weighting(call)


@pytest.mark.parametrize("name", ["SD15", "Flux"])
def test_a_function_of_unknown_demands_keeps_its_shapes_and_the_log_says_so(
    name, unet, tome, denoise, monkeypatch, caplog
):
    model = tome(unet(name))
    default = denoise(tome(unet(name), proportional_attention=True))
    kernel = take_head_sizes(attention.attention_pytorch, 8, 16)
    named = attention.wrap_attn(kernel)
    monkeypatch.setattr(attention, "optimized_attention", named)
    for module in ("comfy.ldm.flux.math", "comfy.ldm.modules.attention"):
        monkeypatch.setattr(f"{module}.optimized_attention", named)
    with caplog.at_level(logging.INFO, logger="token_merge"):
        picture = denoise(model)
    assert not torch.equal(picture, default)
    assert "proportional_attention is left out" in caplog.text
