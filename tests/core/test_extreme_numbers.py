"""Tokens that are all alike, of zeros, or near the largest number of float16."""

import math

import pytest
import torch
import torch.nn.functional as F
from support.layers import LayerTokens, plan_layer
from token_merge.tome_core import (
    DownsampleSettings,
    Draws,
    MergeSettings,
    Stream,
    TokenGrid,
    attend,
)
from token_merge.tome_core.attention import partial as attention_kernels
from token_merge.tome_core.attention.key_weights import add_size_channels, add_sizes_to_mask
from token_merge.tome_core.attention.partial import attend_part_by_matmul, attend_part_on_cpu
from token_merge.tome_core.merging.settings import MATCHINGS

CPU = torch.device("cpu")
GRIDS = [TokenGrid(16, 16), TokenGrid(1, 64), TokenGrid(64, 1), TokenGrid(5, 7, 3)]
EVERY_TYPE = pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
HALVES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
COMPARING = ["local", "global", "k-th"]
KERNELS = pytest.mark.parametrize("kernel", [attend_part_on_cpu, attend_part_by_matmul])


def make_plan(x, grid, matching, ratio=0.5):
    strides = {"stride_x": min(2, grid.width), "stride_y": min(2, grid.height)}
    settings = MergeSettings(ratio=ratio, matching=matching, **strides)
    return plan_layer(settings, LayerTokens(Stream(grid), lambda: x, Draws((7,), CPU)))


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("matching", MATCHINGS)
@EVERY_TYPE
def test_tokens_that_are_all_alike_are_merged_to_what_they_are(grid, matching, dtype):
    for value in (0.0, 6e-8, 1.0, 6e4):
        x = torch.full((2, grid.tokens, 8), value, dtype=dtype)
        plan = make_plan(x, grid, matching)
        assert plan.keys_read < grid.tokens
        merged = plan.merge(x)
        torch.testing.assert_close(merged, x[:, : plan.keys_read])
        torch.testing.assert_close(plan.unmerge(merged), x)


@HALVES
def test_means_of_many_large_tokens_are_as_exact_as_their_type(dtype):
    grid = TokenGrid(32, 32)
    x = (6e4 * torch.rand(2, grid.tokens, 8).clamp(min=0.9)).to(dtype)
    plan = make_plan(x, grid, "random", ratio=0.9)
    exact = plan.merge(x.double())
    assert plan.sizes.max() > 8
    error = (plan.merge(x).double() - exact).abs() / exact
    # One rounding of the mean; on a CPU, bfloat16 also rounds the sum.
    assert error.max() < torch.finfo(dtype).eps


@pytest.mark.parametrize("matching", COMPARING)
@EVERY_TYPE
def test_a_token_of_zeros_is_not_merged_before_tokens_that_are_alike(matching, dtype):
    grid = TokenGrid(16, 16)
    x = torch.ones(1, grid.tokens, 8, dtype=dtype)
    x[:, 1::16] = 0.0
    plan = make_plan(x, grid, matching, ratio=0.25)
    assert torch.equal(plan.unmerge(plan.merge(x)), x)


@pytest.mark.parametrize("matching", MATCHINGS)
def test_a_batch_without_pictures_is_merged_to_one_without_pictures(matching):
    x = torch.zeros(0, 256, 8)
    plan = make_plan(x, TokenGrid(16, 16), matching)
    assert plan.merge(x).shape == (0, plan.keys_read, 8)
    assert plan.unmerge(plan.merge(x)).shape == x.shape


@KERNELS
@EVERY_TYPE
def test_masks_may_hide_all_keys_near_a_query_or_all_beyond(kernel, dtype, monkeypatch):
    monkeypatch.setattr(attention_kernels, "choose_kernel", lambda q, v, bias: kernel)
    stream = Stream(TokenGrid(16, 16), before=3, after=2)
    layer = LayerTokens(stream, None, Draws((7,), CPU), local_window=8)
    plan = plan_layer(DownsampleSettings(), layer)
    length, others = stream.length, stream.number_others(CPU)
    q, k, v = (torch.randn(1, 2, length, 8).to(dtype) for _ in range(3))
    hidden = torch.full((1, 1, length, length), float("-inf"), dtype=dtype)
    beyond = hidden.index_fill(-1, others, 0.0)
    only_others = F.scaled_dot_product_attention(q, k[:, :, others], v[:, :, others], scale=0.3)
    itself = hidden.masked_fill(torch.eye(length, dtype=torch.bool), 0.0)
    tolerance = {"rtol": 0.0, "atol": 16 * torch.finfo(dtype).eps}
    for mask, expected in ((beyond, only_others), (itself, v)):
        found = attend(plan, q, k, v, mask, 0.3)
        torch.testing.assert_close(found, expected, **tolerance)


@KERNELS
@pytest.mark.parametrize("size", [100.0, 6e4])
def test_scores_beyond_float16_are_computed(kernel, size):
    q, k, v = (torch.randn(1, 2, n, 16).clamp(-1, 1).mul(size).half() for n in (5, 9, 9))
    out, lse = kernel(q, k, v, None, 0.25)
    exact = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), scale=0.25)
    assert lse.isfinite().all()
    torch.testing.assert_close(out.double(), exact, rtol=1e-2, atol=1e-2 * size)


@HALVES
@pytest.mark.parametrize("size", [2, 100, 4096, 2**20])
def test_the_weight_of_a_key_is_rounded_by_less_than_the_log_of_its_size(dtype, size):
    """With scores of 0, two keys that stand for 1 and for s tokens share 1 to s."""
    sizes = torch.tensor([[1, size]])
    q, k, v = torch.zeros(1, 1, 1, 64), torch.zeros(1, 1, 2, 64), torch.zeros(1, 1, 2, 64)
    v[:, :, 0] = 1.0
    halves = (x.to(dtype) for x in (q, k, v))
    wide = (x.float() for x in add_size_channels(*halves, sizes, 64**-0.5))
    mask = add_sizes_to_mask(None, sizes, dtype).float()
    found = (
        F.scaled_dot_product_attention(*wide)[..., 0],
        F.scaled_dot_product_attention(q, k, v, attn_mask=mask)[..., 0],
    )
    most = math.log(size) * torch.finfo(dtype).eps / 2
    for share in found:
        weight = 1 / share.double() - 1
        assert (weight / size - 1).abs() < most
