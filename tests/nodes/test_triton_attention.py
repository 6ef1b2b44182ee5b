"""Our own attention kernels, computed by Triton's interpreter, and who calls them."""

from __future__ import annotations

import pytest
import torch
from support.layers import LayerTokens, kernels_of_windows, plan_layer
from support.other_device_run import put_on_other_device
from support.our_kernels import take_here
from token_merge.nodes.hooks.attention.backend import Backend
from token_merge.nodes.hooks.attention.call import AttentionCall
from token_merge.nodes.kernels import shapes
from token_merge.nodes.kernels.usable import load_kernel
from token_merge.tome_core import DownsampleSettings, Draws, MergeSettings, Stream, TokenGrid
from token_merge.tome_core.faster_forms import FORMS, Form
from token_merge.tome_core.windows import attend_densely
from torch.nn.functional import scaled_dot_product_attention

CPU = torch.device("cpu")
SLOW = pytest.mark.thorough


@pytest.fixture(scope="module")
def windows():
    pytest.importorskip("triton")
    return load_kernel("windows")


@pytest.fixture(scope="module")
def weighed():
    pytest.importorskip("triton")
    return load_kernel("weighed_keys")


def make_plan(grid, before=0, after=0, side=8, settings=None, images=1):
    metric = torch.randn(images, grid.tokens, 8)
    layer = LayerTokens(
        Stream(grid, before, after), lambda: metric, Draws((7,), CPU, 3), local_window=side
    )
    with kernels_of_windows():
        return plan_layer(settings or DownsampleSettings(), layer)


DOWNSAMPLE, MERGE, MERGE_MANY = (
    DownsampleSettings(),
    MergeSettings(),
    MergeSettings(ratio=0.6),
)
STILL, WIDE, ODD, VIDEO = (
    (TokenGrid(12, 14), (7, 3), 2, 1, 16),
    (TokenGrid(9, 14), (7, 3), 2, 1, 72),
    (TokenGrid(11, 17), (0, 0), 2, 2, 20),
    (TokenGrid(12, 12, 3), (5, 0), 1, 1, 40),
)


@pytest.mark.parametrize(
    ("case", "settings"),
    [
        (STILL, DOWNSAMPLE),
        (STILL, MERGE_MANY),
        (WIDE, DOWNSAMPLE),
        pytest.param(WIDE, MERGE_MANY, marks=SLOW),
        pytest.param(ODD, MERGE_MANY, marks=SLOW),
        pytest.param(VIDEO, DOWNSAMPLE, marks=SLOW),
        pytest.param(VIDEO, MERGE, marks=SLOW),
    ],
    ids=str,
)
def test_windows_are_those_of_the_reference(case, settings, windows):
    grid, around, heads, key_heads, channels = case
    images = 1 if grid.frames > 1 else 2
    plan = make_plan(grid, *around, settings=settings, images=images)
    q = torch.randn(images, heads, plan.geometry.stream.length, channels)
    k, v = torch.randn(2, images, key_heads, plan.geometry.stream.length, channels)
    exact = attend_densely(plan, *(x.double() for x in (q, k, v)), None, 0.3)
    found = windows.attend(plan, q, k, v, None, 0.3)
    torch.testing.assert_close(found, exact.float())


@pytest.mark.parametrize("settings", [DOWNSAMPLE, pytest.param(MERGE_MANY, marks=SLOW)], ids=str)
def test_values_in_halves_give_what_they_give_at_once(settings, windows, monkeypatch):
    """With as many keys in a block, so that sums are made in the same order."""
    plan = make_plan(TokenGrid(9, 14), 7, settings=settings)
    q, k, v = torch.randn(3, 1, 1, plan.geometry.stream.length, 128)
    found = []
    for parts in (1, 2):
        monkeypatch.setattr(shapes, "IN_HALVES", shapes.Shape(parts=parts))
        found.append(windows.attend(plan, q, k, v, None, 0.1))
    torch.testing.assert_close(*found, atol=3e-7, rtol=0)


@SLOW
def test_tiles_may_have_more_queries_than_a_block(windows):
    plan = make_plan(TokenGrid(40, 40), before=80, side=20, settings=MERGE)
    assert plan.geometry.queries.shape[1] > shapes.Shape.queries
    assert plan.merged.slots.shape[1] > len(plan.geometry.queries)
    q, k, v = torch.randn(3, 1, 1, plan.geometry.stream.length, 16)
    given = plan, q, k, v, None, 0.3
    torch.testing.assert_close(windows.attend(*given), attend_densely(*given))


def test_tokens_may_lie_in_memory_in_any_order(windows):
    plan = make_plan(TokenGrid(12, 12), before=3)
    q, k, v = torch.randn(3, 1, plan.geometry.stream.length, 2, 16).transpose(2, 3)
    expected = windows.attend(plan, *(x.contiguous() for x in (q, k, v)), None, 0.3)
    torch.testing.assert_close(windows.attend(plan, q, k, v, None, 0.3), expected)


@pytest.mark.parametrize(("rows", "channels"), [(1, 16), (2, 16), (2, 120)])
def test_keys_weigh_as_many_tokens_as_they_stand_for(rows, channels, weighed):
    q, (k, v) = torch.randn(2, 4, 150, channels), torch.randn(2, 2, 2, 77, channels)
    sizes = torch.randint(1, 9, (rows, 77))
    for_each_head = (x.double().repeat_interleave(2, dim=1) for x in (k, v))
    bias = sizes.double().log()[:, None, None].expand(2, 4, 150, -1)
    exact = scaled_dot_product_attention(q.double(), *for_each_head, bias, scale=0.2)
    found = weighed.attend_weighed(q, k, v, sizes, 0.2)
    torch.testing.assert_close(found, exact.float())


def attention_pytorch(q, k, v, heads, mask=None, **options):
    raise AssertionError("ours was to be taken")


@pytest.mark.parametrize("skip_output_reshape", [True, False])
def test_an_attention_call_gives_weights_by_our_kernel(skip_output_reshape, monkeypatch):
    computed = take_here(monkeypatch, "attention.attend_weighed")
    q, k, v = torch.randn(3, 1, 2, 70, 64).half()
    sizes = torch.randint(1, 9, (1, 70))
    shapes = {"skip_reshape": True, "skip_output_reshape": skip_output_reshape}
    call = AttentionCall.read(q, k, v, 2, **shapes)
    found = Backend(attention_pytorch, None).run(call, sizes, report=None)
    bias = sizes.log()[:, None, None].expand(1, 2, 70, -1)
    expected = scaled_dot_product_attention(*(x.float() for x in (q, k, v)), bias)
    if not skip_output_reshape:
        expected = expected.transpose(1, 2).flatten(2)
    assert computed == ["attention.attend_weighed"]
    torch.testing.assert_close(found.float(), expected, atol=2e-3, rtol=2e-2)


def test_an_attention_call_in_windows_takes_our_kernel(monkeypatch):
    plan = make_plan(TokenGrid(12, 12), before=3)
    q, k, v = torch.randn(3, 1, 2, plan.geometry.stream.length, 16).half()
    call = AttentionCall.read(q, k, v, 2, skip_reshape=True, skip_output_reshape=True)
    expected = call.run_in_windows(plan)
    computed = take_here(monkeypatch, "windows.attend")
    found = call.run_in_windows(plan)
    assert computed == ["windows.attend"]
    torch.testing.assert_close(found, expected, atol=2e-3, rtol=2e-2)


def test_our_kernel_is_not_tried_where_no_window_is_planned(
    flux, token_merge, denoise, monkeypatch
):
    """Compiling it takes seconds."""

    def fail(*_):
        raise AssertionError("it was tried")

    monkeypatch.setitem(FORMS, "windows.attend", Form(fail, fail, fail, "cpu"))
    denoise(token_merge(flux, target="queries"), size=(32, 32), steps=1)


def test_what_a_gpu_lacks_for_windows_is_told(
    flux, token_downsample, denoise, messages, monkeypatch
):
    model = put_on_other_device(token_downsample(flux, local_window="8"), monkeypatch)
    denoise(model, size=(32, 32), steps=1)
    said = "local windows are slower than they could be: our kernel computes in half precision"
    assert any(said in each for each in messages())
