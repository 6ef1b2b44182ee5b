"""Tiles of queries, the exact keys around them, and the drawn keys beyond."""

from fractions import Fraction

import pytest
import torch
from support.layers import LayerTokens, plan_layer
from token_merge.tome_core import DownsampleSettings, Draws, Stream, TokenGrid, WindowPlan
from token_merge.tome_core.windows import attention as window_attention
from token_merge.tome_core.windows import planning as window_planning
from token_merge.tome_core.windows.attention import attend
from token_merge.tome_core.windows.geometry import TiledAxis, fit_axes
from token_merge.tome_core.windows.reference import attend_densely, weigh_keys, weigh_tiles

CPU = torch.device("cpu")
GRIDS = [
    TokenGrid(8, 8),
    TokenGrid(32, 32),
    TokenGrid(17, 23),
    TokenGrid(2, 3),
    TokenGrid(10, 12, 5),
]
EVERY_GRID = pytest.mark.parametrize("grid", GRIDS, ids=str)
EVERY_FACTOR = pytest.mark.parametrize("factor", [1.5, 2.0, 4.0, 8.0])


def make_plan(grid, before=0, after=0, side=12, index=0, **settings):
    draws = Draws((7,), CPU, index)
    layer = LayerTokens(Stream(grid, before, after), None, draws, local_window=side)
    return plan_layer(DownsampleSettings(**settings), layer)


def list_sets(plan):
    """All keys of the picture, those in the box first."""
    return plan.near, *plan.far


def make_tensors(plan, images=1, heads=2, key_heads=2):
    length = plan.geometry.stream.length
    q = torch.randn(images, heads, length, 8)
    return q, *torch.randn(2, images, key_heads, length, 8)


@EVERY_GRID
def test_every_query_is_in_a_tile_and_is_found_there(grid):
    geometry = make_plan(grid).geometry
    assert torch.equal(geometry.queries.flatten()[geometry.places], torch.arange(grid.tokens))


@EVERY_GRID
@EVERY_FACTOR
def test_the_keys_of_a_tile_stand_for_as_many_tokens_as_there_are(grid, factor):
    plan = make_plan(grid, factor=factor)
    stand_for = sum(keys.layout.keys_read * keys.layout.weight for keys in list_sets(plan))
    assert stand_for == pytest.approx(grid.tokens)


@EVERY_FACTOR
@EVERY_GRID
def test_each_token_counts_once_in_the_mean_of_all_draws(grid, factor):
    """After as many draws as a cell has places, each of them was drawn once."""
    inputs = {"grid": grid, "factor": factor, "method": "stratified"}
    plan = make_plan(**inputs)
    for number, keys in enumerate(list_sets(plan)):
        draws = Fraction(keys.layout.weight).limit_denominator(1000).numerator
        drawn = [list_sets(make_plan(**inputs, index=index))[number] for index in range(draws)]
        mean = sum(weigh_tiles(plan, keys, plan.geometry.tiles, 1) for keys in drawn) / draws
        torch.testing.assert_close(mean[mean > 0], torch.ones(int((mean > 0).sum())))


@EVERY_GRID
def test_all_keys_in_the_box_of_a_tile_are_read_and_weigh_one(grid):
    plan = make_plan(grid)
    weights = weigh_keys(plan, heads=1)[0]
    tile_of = plan.geometry.places // plan.geometry.queries.shape[1]
    for tile in range(len(plan.geometry.queries)):
        own = tile_of == tile
        assert (weights[own][:, own] == 1).all()


def test_queries_are_in_the_middle_of_their_box():
    axis = TiledAxis.fit(64, 12)
    assert (axis.tile, axis.box, axis.tiles) == (8, 12, 8)
    assert axis.find_first("in", torch.arange(3)).tolist() == [-2, 6, 14]
    assert axis.find_first("out", torch.arange(3)).tolist() == [10, 18, 26]


def test_a_box_is_at_most_half_as_long_as_the_grid_and_two_fifths_as_long_in_time():
    assert [axis.box for axis in fit_axes(TokenGrid(64, 20, 5), 16)] == [3, 16, 10]
    assert [axis.box for axis in fit_axes(TokenGrid(30, 52, 21), 12)] == [5, 12, 12]


def test_a_gpus_tiles_have_as_many_queries_as_its_kernel_computes_at_once():
    def count_queries(grid):
        frames, rows, columns = fit_axes(grid, 12, 128)
        return frames.tile, rows.tile, columns.tile

    assert count_queries(TokenGrid(64, 64)) == (1, 16, 8)
    assert count_queries(TokenGrid(30, 52, 21)) == (3, 8, 8)
    assert fit_axes(TokenGrid(64, 64), 12, 128)[1].box == 20
    # Where no higher box fits, they stay as they are.
    assert fit_axes(TokenGrid(32, 32), 12, 128) == fit_axes(TokenGrid(32, 32), 12)


@pytest.mark.parametrize("grid", [TokenGrid(40, 9), TokenGrid(64, 20)], ids=str)
def test_attention_with_a_gpus_tiles_is_that_of_the_keys_each_query_reads(grid, monkeypatch):
    monkeypatch.setitem(window_planning.QUERIES_AT_ONCE, "cpu", 128)
    plan = make_plan(grid, 3, 2)
    assert plan.geometry.axes[1].tile > plan.geometry.axes[2].tile
    q, k, v = make_tensors(plan)
    expected = attend_densely(plan, q, k, v, None, 0.3)
    torch.testing.assert_close(attend(plan, q, k, v, None, 0.3), expected)


def test_no_axis_is_longer_than_its_tiles_and_no_tile_is_empty():
    for length in range(1, 200):
        for side in (1, 2, 3, 5, 8, 12, 64):
            axis = TiledAxis.fit(length, side)
            assert length <= axis.tiles * axis.tile < length + axis.tile
            assert axis.tile <= axis.box <= length


def test_more_keys_are_kept_in_line_with_the_box_than_elsewhere():
    plan = make_plan(TokenGrid(64, 64), factor=3.0)
    weights = {keys.layout.of.reaches: keys.layout.weight for keys in list_sets(plan)}
    assert weights == {
        ("all", "in", "in"): 1.0,
        ("all", "out", "in"): 3.0,
        ("all", "in", "out"): 3.0,
        ("all", "out", "out"): pytest.approx(16.0, rel=0.1),
    }


def test_factor_1_keeps_all_keys_of_a_frame():
    plan = make_plan(TokenGrid(32, 32, 20), factor=1.0, temporal_factor=2.0)
    for keys in (*list_sets(plan), plan.of_others):
        if keys and keys.layout.of.reaches[0] == "in":
            assert keys.layout.weight == 1


def test_temporal_factor_keeps_fewer_keys_of_other_frames():
    grid = TokenGrid(32, 32, 20)
    one, two = (make_plan(grid, temporal_factor=each) for each in (1.0, 2.0))
    for each, other in zip(list_sets(one), list_sets(two), strict=True):
        expected = 2 if each.layout.of.reaches[0] == "out" else 1
        assert other.layout.weight / each.layout.weight == pytest.approx(expected, rel=0.35)


def test_tiles_of_one_place_read_the_same_places_in_all_frames():
    """Errors that change from frame to frame would flicker."""
    grid = TokenGrid(32, 32, 9)
    plan = make_plan(grid)
    for keys in list_sets(plan):
        if keys.layout.of.reaches[0] == "in" and 0 in keys.layout.of.row_axes:
            rows = keys.numbers.unflatten(1, (plan.geometry.tiles[0], -1))
            assert torch.equal(rows[:, 0] % 1024, rows[:, 1] % 1024)


def test_each_head_reads_another_draw():
    plan = make_plan(TokenGrid(32, 32))
    for keys in list_sets(plan)[1:]:
        assert len(keys.numbers) == 8
        assert len(keys.numbers[:, 0].unique(dim=0)) == 8


def test_stratified_reads_one_draw():
    plan = make_plan(TokenGrid(32, 32), method="stratified")
    assert [len(keys.numbers) for keys in list_sets(plan)] == [1, 1, 1, 1]


def test_neighbouring_rows_of_tiles_read_other_keys():
    keys = list_sets(make_plan(TokenGrid(64, 64)))[2]
    assert keys.layout.of.reaches == ("all", "in", "out")
    assert len((keys.numbers[0] - 64 * 8 * torch.arange(8)[:, None]).unique(dim=0)) == 8


def test_max_tokens_leaves_no_room_for_a_window():
    assert isinstance(make_plan(TokenGrid(32, 32), max_tokens=420), WindowPlan)
    assert not isinstance(make_plan(TokenGrid(32, 32), max_tokens=300), WindowPlan)


def test_a_grid_of_one_row_has_no_window():
    assert not isinstance(make_plan(TokenGrid(1, 60)), WindowPlan)


@EVERY_GRID
@pytest.mark.parametrize("others", [(0, 0), (3, 2)])
@EVERY_FACTOR
def test_attention_is_that_of_the_keys_each_query_reads(grid, others, factor):
    plan = make_plan(grid, *others, factor=factor)
    q, k, v = make_tensors(plan, images=2)
    expected = attend_densely(plan, q, k, v, None, 0.3)
    torch.testing.assert_close(attend(plan, q, k, v, None, 0.3), expected)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("images", [1, 2])
@pytest.mark.parametrize("grid", [TokenGrid(9, 8), TokenGrid(6, 5, 4)], ids=str)
def test_masks_act_on_the_keys_they_name(heads, rows, images, grid):
    plan = make_plan(grid, 3, 2)
    q, k, v = make_tensors(plan, images=2)
    length = plan.geometry.stream.length
    mask = torch.randn(images, heads, length if rows else 1, length)
    mask[..., :2] = float("-inf")
    expected = attend_densely(plan, q, k, v, mask, 0.3)
    torch.testing.assert_close(attend(plan, q, k, v, mask, 0.3), expected)


@pytest.mark.parametrize("key_heads", [1, 2, 3, 6])
def test_several_heads_of_queries_share_a_head_of_keys(key_heads):
    plan = make_plan(TokenGrid(9, 8), 3, 2)
    q, k, v = make_tensors(plan, images=2, heads=6, key_heads=key_heads)
    expected = attend_densely(plan, q, k, v, None, 0.3)
    torch.testing.assert_close(attend(plan, q, k, v, None, 0.3), expected)


@pytest.mark.parametrize("key_heads", [4, 12])
@pytest.mark.parametrize(("share", "together"), [(0.1, 1), (2.0, 3), (3.0, 4), (100.0, 12)])
def test_how_many_heads_are_computed_together_changes_nothing(
    share, together, key_heads, monkeypatch
):
    monkeypatch.setitem(window_attention.MOST_COPIED_BY_DEVICE, "cpu", share)
    plan = make_plan(TokenGrid(20, 16), 3, 2)
    assert len(window_attention.choose_heads(plan.geometry, 12)[0]) == together
    q, k, v = make_tensors(plan, images=2, heads=12, key_heads=key_heads)
    expected = attend_densely(plan, q, k, v, None, 0.3)
    torch.testing.assert_close(attend(plan, q, k, v, None, 0.3), expected)


@pytest.mark.parametrize("images", [1, 2])
def test_tensors_may_be_views_of_joined_heads(images):
    plan = make_plan(TokenGrid(9, 8), 3, 2)
    q, k, v = make_tensors(plan, images, heads=3, key_heads=3)
    views = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v))
    expected = attend(plan, q, k, v, None, 0.3)
    torch.testing.assert_close(attend(plan, *views, None, 0.3), expected)


def test_channels_need_not_follow_each_other_in_memory():
    plan = make_plan(TokenGrid(9, 8), 3, 2)
    q, k, v = make_tensors(plan, images=2, heads=3, key_heads=3)
    turned = (x.mT.contiguous().mT for x in (q, k, v))
    expected = attend(plan, q, k, v, None, 0.3)
    torch.testing.assert_close(attend(plan, *turned, None, 0.3), expected)


def test_values_may_have_other_channels_and_strides_than_keys():
    plan = make_plan(TokenGrid(9, 8), 3, 2)
    q, k, v = make_tensors(plan, images=2, heads=2, key_heads=1)
    joined = torch.cat([k, v], dim=-1)
    apart = joined.split(8, dim=-1)
    expected = attend(plan, q, k, v, None, 0.3)
    torch.testing.assert_close(attend(plan, q, apart[0], v, None, 0.3), expected)
    torch.testing.assert_close(attend(plan, q, *apart, None, 0.3), expected)
