"""An attention call on a GPU by each of ComfyUI's functions: keys weigh right, or the run tells."""

from dataclasses import replace

import comfy.ldm.modules.attention as attention
import pytest
import torch
import torch.nn.functional as F
from support.attention_kernels import install_kernels
from support.comfyui_version import leave_out_before
from support.other_device import OtherDevice, move
from support.other_device_run import tell_free_memory_of_both
from support.pairs import cover_pairs
from token_merge.nodes.hooks.attention.backend import NOT_WEIGHED, Backend
from token_merge.nodes.hooks.attention.call import AttentionCall
from token_merge.nodes.hooks.run.report import RunReport
from token_merge.tome_core.attention.key_weights import add_sizes_to_mask

FUNCTIONS = [
    "attention_basic",
    "attention_split",
    "attention_sub_quad",
    "attention_pytorch",
    "attention_xformers",
    "attention_flash",
    "attention_sage",
    "attention_sage of a fork",
    "attention3_sage",
]
BOUNDS = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
"""The difference from float64 is at most so large, in outputs near the size of one."""
FEWER_KEY_HEADS = {"attention_basic": "0.24.1", "attention_pytorch": "0.24.1"}
"""This is the first ComfyUI whose function takes fewer key heads than heads; for the others it is
0.30.0."""
MASKS_LEFT_TO_PYTORCH = "masks that SageAttention leaves to PyTorch"
QUERIES, KEYS, HEADS = 1030, 9, 2
"""ComfyUI gives SageAttention 3 no call of 1024 queries or fewer."""


def make_mask(kind):
    seen = torch.rand(2, 1, QUERIES, KEYS) > 0.3
    seen[..., 0] = True
    numbers = torch.zeros(seen.shape).masked_fill(~seen, float("-inf"))
    return {"none": None, "bool": seen, "numbers": numbers}[kind]


def make_call(channels, dtype, mask=None, key_heads=HEADS, **options):
    q = torch.randn(2, HEADS, QUERIES, channels)
    k, v = torch.randn(2, 2, key_heads, KEYS, channels)
    mask = mask.to(dtype) if mask is not None and mask.is_floating_point() else mask
    options = {"enable_gqa": True, **options} if key_heads < HEADS else options
    return AttentionCall(*(x.to(dtype) for x in (q, k, v)), HEADS, mask, True, options)


def compute_exactly(call, sizes):
    """In float64. sizes: (B, Nk)."""
    repeats = HEADS // call.k.shape[1]
    q, k, v = call.q, *(x.repeat_interleave(repeats, 1) for x in (call.k, call.v))
    bias = sizes.double().log()[:, None, None].expand(-1, -1, QUERIES, -1)
    if call.mask is not None and call.mask.dtype == torch.bool:
        bias = bias.masked_fill(~call.mask, float("-inf"))
    elif call.mask is not None:
        bias = bias + call.mask
    return F.scaled_dot_product_attention(*(x.double() for x in (q, k, v)), attn_mask=bias)


def run_there(function, call, sizes):
    """Output of a call on the other device, and what all nodes are told."""
    report = RunReport()
    tensors = move([call.q, call.k, call.v, call.mask])
    moved = AttentionCall(*tensors[:3], call.heads, tensors[3], True, call.options)
    with OtherDevice():
        out = Backend(function, None).run(moved, move(sizes), report)
    return out.held, set(report.said.get(None, {}))


@pytest.mark.parametrize(
    ("name", "channels", "dtype", "mask", "key_heads"),
    cover_pairs(FUNCTIONS, [8, 40, 64, 128, 256], BOUNDS, ["none", "bool", "numbers"], [HEADS, 1]),
    ids=str,
)
def test_keys_weigh_as_many_as_they_stand_for_or_the_run_says_that_not(
    name, channels, dtype, mask, key_heads, monkeypatch
):
    tell_free_memory_of_both(monkeypatch)
    kernels = install_kernels(monkeypatch, sage_takes_masks=name.endswith("fork"))
    function = getattr(attention, name.split()[0])
    if key_heads < HEADS:
        first = FEWER_KEY_HEADS.get(function.__name__, "0.30.0")
        leave_out_before(first, f"fewer key heads in {function.__name__}")
    if mask != "none" and function is attention.attention_sage:
        leave_out_before("0.30.0", MASKS_LEFT_TO_PYTORCH)
    if channels not in (64, 128) and function is attention.attention3_sage:
        leave_out_before("0.30.0", "other head sizes beside SageAttention 3")
    call = make_call(channels, dtype, make_mask(mask), key_heads)
    sizes = torch.randint(1, 9, (2, KEYS)).float()
    run_there(function, replace(call, mask=None), None)
    refused_unweighed, kernels.refused[:] = set(kernels.refused), []
    out, notes = run_there(function, call, sizes)
    assert set(kernels.refused) <= refused_unweighed
    assert notes <= {NOT_WEIGHED}
    exact = compute_exactly(call, torch.ones_like(sizes) if notes else sizes)
    torch.testing.assert_close(out.double(), exact, atol=BOUNDS[dtype], rtol=BOUNDS[dtype])


SIZES = torch.tensor([[1.0, 4.0, 4.0, 1.0, 2.0, 9.0, 1.0, 1.0, 3.0]] * 2)


@pytest.mark.parametrize(
    ("name", "channels", "mask", "computed", "weighed"),
    [
        ("attention_xformers", 64, "none", "memory_efficient_attention", True),
        ("attention_xformers", 128, "numbers", "memory_efficient_attention", True),
        ("attention_xformers", 256, "none", "memory_efficient_attention", False),
        ("attention_flash", 128, "none", "flash_attn_func", True),
        ("attention_flash", 256, "none", "flash_attn_func", False),
        ("attention_sage", 64, "none", "sageattn", False),
        ("attention_sage", 128, "none", "sageattn", False),
        ("attention3_sage", 64, "none", "sageattn3_blackwell", False),
    ],
)
def test_a_kernel_that_the_user_chose_computes_the_weighed_call_too(
    name, channels, mask, computed, weighed, monkeypatch
):
    kernels = install_kernels(monkeypatch)
    call = make_call(channels, torch.float16, make_mask(mask))
    _, notes = run_there(getattr(attention, name), call, SIZES)
    assert (kernels.computed, kernels.refused) == ([computed], [])
    assert bool(notes) != weighed


@pytest.mark.parametrize("name", ["attention_flash", "attention_sage", "attention3_sage"])
def test_calls_that_comfyui_hands_to_pytorch_are_weighed(name, monkeypatch):
    if name == "attention_sage":
        leave_out_before("0.30.0", MASKS_LEFT_TO_PYTORCH)
    kernels = install_kernels(monkeypatch)
    call = make_call(64, torch.float16, make_mask("numbers"))
    out, notes = run_there(getattr(attention, name), call, SIZES)
    assert not notes
    assert not kernels.computed
    torch.testing.assert_close(out.double(), compute_exactly(call, SIZES), atol=4e-3, rtol=4e-3)


def test_calls_that_a_model_wants_precise_are_weighed_beside_sageattention(monkeypatch):
    kernels = install_kernels(monkeypatch, sage_takes_masks=True)
    call = make_call(64, torch.float16, low_precision_attention=False)
    out, notes = run_there(attention.attention_sage, call, SIZES)
    assert not notes
    assert not kernels.computed
    torch.testing.assert_close(out.double(), compute_exactly(call, SIZES), atol=4e-3, rtol=4e-3)


def test_a_mask_of_log_sizes_would_weigh_too_little_in_forks_of_sageattention(monkeypatch):
    """Why it is left out there: ln s is taken as log2 s."""
    install_kernels(monkeypatch, sage_takes_masks=True)
    call = make_call(64, torch.float16)
    q, k, v, sizes = move([call.q, call.k, call.v, SIZES])
    with OtherDevice():
        mask = add_sizes_to_mask(None, sizes, q.dtype)
        out = AttentionCall(q, k, v, HEADS, mask, True, {}).run(attention.attention_sage)
    weights = SIZES ** torch.tensor(2.0).log()
    exact = compute_exactly(call, weights)
    torch.testing.assert_close(out.held.double(), exact, atol=4e-3, rtol=4e-3)
