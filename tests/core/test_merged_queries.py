"""Queries of a tile that are merged: they read the keys out of their box together."""

from dataclasses import replace

import pytest
import torch
from support.core_cases import check_slots, make_layer
from support.layers import LayerTokens, plan_layer, plan_targets
from token_merge.tome_core import (
    Draws,
    MergeSettings,
    Skipped,
    Stream,
    TokenGrid,
    WindowPlan,
    attend,
)
from token_merge.tome_core.windows.geometry import TiledAxis
from token_merge.tome_core.windows.queries import MOST_KEPT, cut_strips
from token_merge.tome_core.windows.reference import attend_densely

CPU = torch.device("cpu")
GRIDS = [TokenGrid(32, 32), TokenGrid(17, 23), TokenGrid(10, 12, 5)]
EVERY_GRID = pytest.mark.parametrize("grid", GRIDS, ids=str)


def make_plan(grid, metric=None, before=0, after=0, images=1, index=0, **settings):
    if metric is None:
        metric = torch.randn(images, grid.tokens, 8)
    chosen = MergeSettings(**settings)
    draws = Draws((chosen.seed, 7), CPU, index)
    stream = Stream(grid, before, after)
    layer = LayerTokens(stream, lambda: metric, draws, local_window=chosen.find_local_window(12))
    return plan_layer(chosen, layer)


def make_tensors(plan, images=1, heads=2, key_heads=2):
    q = torch.randn(images, heads, plan.geometry.stream.length, 8)
    return q, *torch.randn(2, images, key_heads, plan.geometry.stream.length, 8)


@EVERY_GRID
@pytest.mark.parametrize("others", [(0, 0), (3, 2)])
@pytest.mark.parametrize("ratio", [0.2, 0.5, 0.9])
def test_attention_is_that_of_the_keys_each_query_reads(grid, others, ratio):
    plan = make_plan(grid, None, *others, images=2, ratio=ratio)
    check_slots(plan.merged)
    q, k, v = make_tensors(plan, images=2)
    expected = attend_densely(plan, q, k, v, None, 0.3)
    torch.testing.assert_close(attend(plan, q, k, v, None, 0.3), expected)


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("heads", [1, 4])
def test_masks_act_on_the_keys_they_name(heads, rows):
    """Where a mask hides other keys from each query, all queries read all keys for themselves."""
    plan = make_plan(TokenGrid(9, 8), None, 3, 2, images=2)
    q, k, v = make_tensors(plan, images=2, heads=4)
    length = plan.geometry.stream.length
    mask = torch.randn(2, heads, length if rows else 1, length)
    mask[..., :2] = float("-inf")
    expected = attend_densely(plan, q, k, v, mask, 0.3)
    torch.testing.assert_close(attend(plan, q, k, v, mask, 0.3), expected)


def test_equal_queries_are_merged_without_any_error():
    grid = TokenGrid(32, 32)
    kinds = torch.randn(16, 16, 8).repeat_interleave(2, 0).repeat_interleave(2, 1).flatten(0, 1)
    plan = make_plan(grid, kinds[None], ratio=0.5)
    q = kinds.expand(1, 2, -1, -1)
    k, v = torch.randn(2, 1, 2, grid.tokens, 8)
    expected = attend_densely(replace(plan, merged=None), q, k, v, None, 0.3)
    torch.testing.assert_close(attend(plan, q, k, v, None, 0.3), expected)


def test_the_queries_most_similar_to_a_dst_are_merged_into_it():
    grid, metric = TokenGrid(24, 24), torch.randn(1, 24 * 24, 8)
    plan = make_plan(grid, metric, random_destinations=False, ratio=0.3)
    (kept,), (slots,) = plan.merged.kept, plan.merged.slots
    height, width = (axis.tile for axis in plan.geometry.axes[1:])
    assert slots.shape == plan.geometry.queries.shape
    first_of_cells = torch.arange(height * width).view(height, width)[::2, ::2].flatten()
    unit = metric[0] - metric[0].mean(dim=-1, keepdim=True)
    unit = torch.nn.functional.normalize(unit, dim=-1)
    for tile, numbers in enumerate(plan.geometry.queries):
        dst = numbers[first_of_cells]
        best, which = (unit[numbers] @ unit[dst].T).max(dim=1)
        assert torch.isin(first_of_cells, kept[tile]).all()
        src = torch.ones(len(numbers), dtype=torch.bool).scatter_(0, kept[tile], False)
        stays = ~src
        stays[first_of_cells] = False
        assert best[src].min() >= best[stays].max()
        assert torch.equal(numbers[kept[tile][slots[tile]]][src], dst[which][src])


def test_each_index_has_other_dst():
    metric = torch.randn(1, 1024, 8)
    one, other, again = (
        make_plan(TokenGrid(32, 32), metric, index=index).merged.slots for index in (0, 1, 0)
    )
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_merged_queries_read_fewer_keys_and_that_is_counted():
    grid = TokenGrid(64, 64)
    few, most = (make_plan(grid, before=5, ratio=ratio) for ratio in (0.5, 0.2))
    beyond = sum(keys.layout.keys_read for keys in few.far)
    assert few.queries_kept == pytest.approx(2048 + 5, abs=40)
    assert few.keys_read == pytest.approx(few.near.layout.keys_read + beyond / 2 + 5, rel=0.02)
    assert most.queries_kept == pytest.approx(0.8 * 4096 + 5, abs=40)


@pytest.mark.parametrize(("ratio", "height"), [(0.2, 10), (0.3, 11), (0.5, 16), (0.75, 32)])
def test_tiles_are_higher_so_that_a_kernels_block_of_queries_remains(ratio, height):
    plan = make_plan(TokenGrid(height * 10, 128), ratio=ratio)
    assert [axis.tile for axis in plan.geometry.axes] == [1, height, 8]
    assert 60 <= plan.merged.kept.shape[2] <= 64


@pytest.mark.parametrize(
    ("grid", "side", "rows"),
    [
        (TokenGrid(30, 52, 21), 12, 10),  # a frame of a tile of 3 x 10 x 8
        (TokenGrid(120, 120), 16, 6),  # half of a tile of 12 x 10
        (TokenGrid(128, 128), 32, 2),  # 4 rows of 19 would do, but do not divide 22
    ],
    ids=str,
)
def test_strips_are_rows_of_a_tile_that_leave_no_more_than_a_kernels_block(grid, side, rows):
    plan = make_plan(grid, local_window=side)
    assert plan.merged.slots.shape[2] == rows * plan.geometry.axes[2].tile
    assert plan.merged.kept.shape[2] <= MOST_KEPT


def test_tiles_are_as_high_as_all_their_dst_need():
    """``max_tokens`` may ask for fewer queries than there are dst, and all dst are kept."""
    limited = {"ratio": 0.5, "stride_x": 2, "stride_y": 1, "max_tokens": 6553}
    merged = make_plan(TokenGrid(128, 128), **limited).merged
    check_slots(merged)
    assert (merged.kept.shape[2], merged.slots.shape[2]) == (MOST_KEPT, 128)


def test_strips_have_no_more_dst_than_a_kernels_block():
    """Where a tile is narrower than a cell, each row of it has a dst."""
    axes = TiledAxis(41, 2, 4), TiledAxis(258, 43, 47), TiledAxis(68, 6, 10)
    strips = cut_strips(axes, (1, 8), 0.875, None, CPU)
    assert strips.dst.shape[1] == strips.kept == 43


def test_a_tile_without_any_query_to_merge_keeps_all():
    plan = make_plan(TokenGrid(32, 32), local_window=1)
    assert isinstance(plan, WindowPlan)
    assert plan.merged is None
    assert plan.queries_kept == 1024


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({"ratio": 0.1}, "merging 102 of 1024 tokens costs more than it saves"),
        ({"ratio": 0.5, "grid": TokenGrid(5, 6)}, "30 tokens are too few to gain"),
    ],
)
def test_too_little_to_merge_is_skipped_with_a_reason(inputs, reason):
    plan = make_plan(**{"grid": TokenGrid(32, 32), **inputs})
    assert isinstance(plan, Skipped)
    assert plan.reason == reason


def test_one_plan_serves_queries_and_keys():
    grid, settings = TokenGrid(32, 32), MergeSettings()
    layer = make_layer(settings, Stream(grid), torch.randn(1, 1024, 8))
    plans = plan_targets(settings, layer, settings.find_targets(1, (1, 2, 4)))
    assert plans["queries"] is plans["keys and values"]
    assert isinstance(plans["queries"], WindowPlan)
