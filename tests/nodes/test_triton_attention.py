"""Our own kernel, computed by Triton's interpreter, and when it is taken."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from support.window_reference import attend_densely
from token_merge.nodes.hooks import kernel_choice
from token_merge.nodes.hooks.attention_call import AttentionCall, AttentionFunction
from token_merge.tome_core import (
    DownsampleSettings,
    Draws,
    LayerTokens,
    MergeSettings,
    Stream,
    TokenGrid,
)
from token_merge.tome_core.planning import plan_layer

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def kernel():
    pytest.importorskip("triton")
    return kernel_choice._import_kernel()


@pytest.fixture
def on_every_device(kernel, monkeypatch):
    """Nothing but the device speaks against our kernel."""
    monkeypatch.setattr(kernel_choice, "explain_lack", lambda *_: "")


def make_plan(grid, before=0, after=0, side=8, settings=None, images=1):
    metric = torch.randn(images, grid.tokens, 8)
    layer = LayerTokens(
        Stream(grid, before, after),
        lambda: metric,
        Draws((7,), CPU, 3),
        local_window=side,
        by_number=True,
    )
    return plan_layer(settings or DownsampleSettings(), layer)


@pytest.mark.parametrize(
    "settings", [DownsampleSettings(), MergeSettings(), MergeSettings(ratio=0.6)], ids=str
)
@pytest.mark.parametrize(
    ("grid", "around", "heads", "key_heads", "channels"),
    [
        (TokenGrid(12, 14), (7, 3), 2, 1, 16),
        (TokenGrid(11, 17), (0, 0), 2, 2, 40),
        (TokenGrid(12, 12, 3), (5, 0), 1, 1, 16),
    ],
    ids=str,
)
def test_windows_are_those_of_the_reference(
    grid, around, heads, key_heads, channels, settings, kernel
):
    images = 1 if grid.frames > 1 else 2
    plan = make_plan(grid, *around, settings=settings, images=images)
    q = torch.randn(images, heads, plan.stream.length, channels)
    k, v = torch.randn(2, images, key_heads, plan.stream.length, channels)
    expected = attend_densely(plan, q, k, v, None, 0.3)
    torch.testing.assert_close(kernel.attend_windows(plan, q, k, v, 0.3), expected)


@pytest.mark.parametrize("settings", [DownsampleSettings(), MergeSettings()], ids=str)
def test_tiles_may_have_more_queries_than_a_block(settings, kernel):
    plan = make_plan(TokenGrid(40, 40), before=80, side=20, settings=settings)
    assert plan.queries.shape[1] > kernel.QUERIES
    assert not plan.merged or plan.merged.slots.shape[1] > len(plan.queries)
    q, k, v = torch.randn(3, 1, 1, plan.stream.length, 16)
    expected = attend_densely(plan, q, k, v, None, 0.3)
    torch.testing.assert_close(kernel.attend_windows(plan, q, k, v, 0.3), expected)


def test_tokens_may_lie_in_memory_in_any_order(kernel):
    plan = make_plan(TokenGrid(20, 20), before=3)
    q, k, v = torch.randn(3, 1, plan.stream.length, 2, 16).transpose(2, 3)
    expected = kernel.attend_windows(plan, *(x.contiguous() for x in (q, k, v)), 0.3)
    torch.testing.assert_close(kernel.attend_windows(plan, q, k, v, 0.3), expected)


@pytest.mark.parametrize("rows", [1, 2])
def test_keys_weigh_as_many_tokens_as_they_stand_for(rows, kernel):
    q, (k, v) = torch.randn(2, 4, 150, 16), torch.randn(2, 2, 2, 77, 16)
    sizes = torch.randint(1, 9, (rows, 77))
    whole = (x.repeat_interleave(2, dim=1) for x in (k, v))
    bias = sizes.log()[:, None, None].expand(2, 4, 150, -1)
    expected = torch.nn.functional.scaled_dot_product_attention(q, *whole, bias, scale=0.2)
    torch.testing.assert_close(kernel.attend_weighed(q, k, v, sizes, 0.2), expected)


def attention_pytorch(q, k, v, heads, mask=None, **options):
    raise AssertionError("ours was to be taken")


@pytest.mark.parametrize("skip_output_reshape", [True, False])
def test_an_attention_call_gives_weights_by_our_kernel(skip_output_reshape, on_every_device):
    q, k, v = torch.randn(3, 1, 2, 70, 64).half()
    sizes = torch.randint(1, 9, (1, 70))
    shapes = {"skip_reshape": True, "skip_output_reshape": skip_output_reshape}
    call = AttentionCall.read(q, k, v, 2, **shapes)
    found = call.reshape_output(
        AttentionFunction(attention_pytorch, None).run(call, sizes, report=None)
    )
    bias = sizes.log()[:, None, None].expand(1, 2, 70, -1)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *(x.float() for x in (q, k, v)), bias
    )
    if not skip_output_reshape:
        expected = expected.transpose(1, 2).flatten(2)
    torch.testing.assert_close(found.float(), expected, atol=2e-3, rtol=2e-2)


def test_an_attention_call_in_windows_takes_our_kernel(on_every_device, monkeypatch):
    plan = make_plan(TokenGrid(20, 20), before=3)
    q, k, v = torch.randn(3, 1, 2, plan.stream.length, 16).half()
    call = AttentionCall.read(q, k, v, 2, skip_reshape=True, skip_output_reshape=True)
    found = call.run_in_windows(plan)
    monkeypatch.setattr(kernel_choice, "explain_lack", lambda *_: "none here")
    torch.testing.assert_close(found, call.run_in_windows(plan), atol=2e-3, rtol=2e-2)


HALF = torch.randn(1, 2, 70, 64).half()
FAR = torch.empty(1, 2, 2**24 + 1, 64, dtype=torch.float16, device="meta")


@pytest.mark.parametrize(
    ("q", "v", "why"),
    [
        (HALF, HALF, ""),
        (HALF.bfloat16(), HALF.bfloat16(), ""),
        (HALF.float(), HALF.float(), "single precision"),
        (HALF, HALF[..., :32], "fewer channels of values"),
        (HALF.repeat(1, 1, 1, 3), HALF.repeat(1, 1, 1, 3), "too many channels"),
        (HALF.mT.contiguous().mT, HALF, "channels apart in memory"),
        (HALF, HALF.clone().requires_grad_(), "gradients are asked for"),
        (HALF, FAR, "too far apart"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_other_tensors_are_left_to_pytorchs_kernels(q, v, why, on_every_device):
    assert kernel_choice.takes(q, q, v) == (not why)


def test_merged_queries_are_left_to_pytorch_where_their_kernel_alone_does_not_run(
    kernel, monkeypatch
):
    def explain_lack(*asked):
        return "no" if asked[3:] == (True,) else ""

    monkeypatch.setattr(kernel_choice, "explain_lack", explain_lack)
    assert kernel_choice.takes(HALF, HALF, HALF)
    assert not kernel_choice.takes(HALF, HALF, HALF, merges=True)


def test_values_that_need_no_gradients_just_now_are_taken(on_every_device):
    learned = HALF.clone().requires_grad_()
    with torch.no_grad():
        assert kernel_choice.takes(HALF, HALF, learned)


def test_channels_that_would_be_padded_get_their_weights_otherwise(on_every_device):
    few = HALF[..., :40].contiguous()
    assert kernel_choice.takes(few, few, few)
    assert not kernel_choice.pays(few, few, few)


@pytest.mark.parametrize(("channels", "merges"), [(40, False), (64, False), (64, True)])
def test_the_kernel_is_tried_before_it_is_taken(channels, merges, kernel):
    assert kernel_choice._works(kernel, CPU, torch.float16, channels, merges)


@pytest.mark.parametrize("function", ["attend_windows", "attend_weighed"])
def test_a_kernel_that_computes_something_else_is_found_out(function, kernel):
    right = {name: getattr(kernel, name) for name in ("attend_windows", "attend_weighed")}
    found = SimpleNamespace(**{**right, function: lambda *args: 1.1 * right[function](*args)})
    assert not kernel_choice._works(found, CPU, torch.float16, 64, False)


def raise_error(*_):
    raise RuntimeError("no compiler was found")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"capability": (7, 5)}, "the GPU is not one of NVIDIA's since 2020"),
        ({"import": ImportError("triton")}, "Triton is not installed"),
        ({"works": lambda *_: False}, "Triton gives other results on this GPU"),
        ({"works": raise_error}, "Triton does not run here (no compiler was found)"),
    ],
    ids=["all there", "too old", "no Triton", "wrong", "fails"],
)
def test_what_speaks_against_our_kernel_is_told(changes, reason, monkeypatch):
    def import_kernel():
        if "import" in changes:
            raise changes["import"]

    capability = changes.get("capability", (8, 9))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(kernel_choice, "_import_kernel", import_kernel)
    monkeypatch.setattr(kernel_choice, "_works", changes.get("works", lambda *_: True))
    kernel_choice.explain_lack.cache_clear()
    try:
        assert kernel_choice.explain_lack(torch.device("cuda", 7)) == reason
    finally:
        kernel_choice.explain_lack.cache_clear()


def test_without_a_gpu_there_is_nothing_to_try():
    assert kernel_choice.explain_lack(CPU) == "there is no GPU"


def test_our_kernel_is_not_tried_where_no_window_is_planned(
    flux, token_merge, denoise, monkeypatch
):
    """Compiling it takes seconds."""
    monkeypatch.setattr(kernel_choice, "explain_lack", raise_error)
    denoise(token_merge(flux, target="queries"), size=(32, 32), steps=1)
