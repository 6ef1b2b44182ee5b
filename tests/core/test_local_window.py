"""Tiles of queries, the exact keys around them, and the drawn keys beyond."""

import pytest
import torch
from support.window_reference import attend_densely, check_drawn_inside
from token_merge.tome_core import DownsampleSettings, Draws, LayerTokens, Stream, TokenGrid
from token_merge.tome_core.cells import count_tokens
from token_merge.tome_core.local_window import fit_box, place_windows
from token_merge.tome_core.planning import plan_layer
from token_merge.tome_core.window_attention import attend_windows

CPU = torch.device("cpu")
GRIDS = [
    TokenGrid(8, 8),
    TokenGrid(32, 32),
    TokenGrid(17, 23),
    TokenGrid(2, 3),
    TokenGrid(1, 60),
    TokenGrid(10, 12, 5),
]
EVERY_GRID = pytest.mark.parametrize("grid", GRIDS, ids=str)


def make_plan(grid, before=0, after=0, side=16, **settings):
    layer = LayerTokens(Stream(grid, before, after), None, Draws((7,), CPU), local_window=side)
    return plan_layer(DownsampleSettings(**settings), layer)


def make_tensors(plan, images=1, heads=2, key_heads=2):
    length = plan.stream.length
    q = torch.randn(images, heads, length, 8)
    return q, *torch.randn(2, images, key_heads, length, 8)


@EVERY_GRID
def test_tiles_hold_every_token_and_boxes_hold_their_tiles(grid):
    window = place_windows(Stream(grid), grid, fit_box(grid, 16), CPU)
    tokens = window.queries.flatten().unique()
    assert torch.equal(tokens, torch.arange(grid.tokens))
    for queries, near in zip(window.queries, window.near, strict=True):
        assert set(queries.tolist()) <= set(near.tolist())
        assert len(near.unique()) == len(near)


@EVERY_GRID
def test_no_token_is_in_two_tiles(grid):
    window = place_windows(Stream(grid), grid, fit_box(grid, 16), CPU)
    assert sum(len(queries.unique()) for queries in window.queries) == grid.tokens


def test_a_box_is_at_most_half_as_long_as_the_grid():
    assert fit_box(TokenGrid(64, 20, 5), 16) == (3, 16, 10)


def test_a_box_is_two_fifths_as_long_in_time():
    assert fit_box(TokenGrid(30, 52, 21), 12) == (5, 12, 12)


def test_tiles_of_one_place_read_the_same_draw_in_all_frames():
    plan = make_plan(TokenGrid(32, 32, 9))
    for tiles in plan.deal(plan.order[:, None]):
        tiles = tiles.flatten()
        in_frame = plan.window.near[tiles, 0] % (32 * 32)
        assert len(tiles) == plan.window.tiles_in_time * len(in_frame.unique())


def test_queries_are_in_the_middle_of_their_box_except_at_borders():
    window = place_windows(Stream(TokenGrid(32, 32)), TokenGrid(16, 16), (1, 12, 12), CPU)
    assert window.queries.shape == (16, 64)
    assert window.near.shape == (16, 144)
    first_rows = window.near[:, 0] // 32
    assert first_rows.unique().tolist() == [0, 6, 14, 20]


@EVERY_GRID
@pytest.mark.parametrize("others", [(0, 0), (3, 2)])
@pytest.mark.parametrize("factor", [1.5, 2.0, 4.0])
def test_the_drawn_keys_within_a_box_are_found(grid, others, factor):
    plan = make_plan(grid, *others, factor=factor)
    check_drawn_inside(plan, heads=3)


@EVERY_GRID
@pytest.mark.parametrize("factor", [1.5, 2.0, 4.0])
def test_the_keys_of_a_draw_stand_for_every_token_once(grid, factor):
    plan = make_plan(grid, before=3, after=2, factor=factor)
    assert sum((end - start) * size for start, end, size in plan.spans_of_size) == grid.tokens + 5
    sizes = {token: size for start, end, size in plan.spans_of_size for token in range(start, end)}
    cells = count_tokens(grid, plan.smaller, CPU)[0]
    for numbers, kept in zip(plan.numbers, plan.kept, strict=True):
        size_of = dict(zip((kept + 3).tolist(), cells.tolist(), strict=True))
        for place, number in enumerate(numbers.tolist()):
            assert sizes[place] == size_of.get(number, 1)
        assert set(numbers.tolist()) - {*size_of} == {*plan.window.others.tolist()}


def test_all_draws_together_read_every_token_once():
    plan = make_plan(TokenGrid(32, 32), factor=4.0)
    assert plan.kept.shape == (16, 64)
    assert len(plan.kept.unique()) == 1024


def test_heads_of_one_query_read_one_draw_after_the_other():
    plan = make_plan(TokenGrid(32, 32), before=3, factor=2.0)
    for draw in range(4):
        read = [plan.numbers[(draw + head) % 4] for head in range(6)]
        assert torch.equal(plan.list_drawn(draw, 6), torch.stack(read))


def test_stratified_gives_all_heads_the_same_keys():
    plan = make_plan(TokenGrid(32, 32), method="stratified")
    assert torch.equal(plan.list_drawn(0, 6), plan.numbers)
    assert plan.list_drawn_inside(torch.float32, 6)[0].shape[0] == 1


def test_stratified_reads_one_draw():
    assert len(make_plan(TokenGrid(32, 32), method="stratified").kept) == 1


def test_max_tokens_leaves_no_room_for_a_window():
    assert make_plan(TokenGrid(32, 32), max_tokens=512).window
    assert make_plan(TokenGrid(32, 32), max_tokens=511).window is None


def test_a_factor_that_drops_little_leaves_no_room_for_a_window():
    assert make_plan(TokenGrid(32, 32), factor=1.25).window
    assert make_plan(TokenGrid(32, 32), factor=1.1).window is None


@EVERY_GRID
@pytest.mark.parametrize("others", [(0, 0), (3, 2)])
@pytest.mark.parametrize("factor", [1.5, 2.0])
def test_attention_is_that_of_the_keys_each_query_reads(grid, others, factor):
    plan = make_plan(grid, *others, factor=factor)
    q, k, v = make_tensors(plan, images=2)
    expected = attend_densely(plan, q, k, v, None, 0.3)
    torch.testing.assert_close(attend_windows(plan, q, k, v, None, 0.3), expected)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("images", [1, 2])
def test_masks_act_on_the_keys_they_name(heads, rows, images):
    plan = make_plan(TokenGrid(9, 8), 3, 2)
    q, k, v = make_tensors(plan, images=2)
    length = plan.stream.length
    mask = torch.randn(images, heads, length if rows else 1, length)
    mask[..., :2] = float("-inf")
    expected = attend_densely(plan, q, k, v, mask, 0.3)
    torch.testing.assert_close(attend_windows(plan, q, k, v, mask, 0.3), expected)


def test_several_heads_of_queries_share_a_head_of_keys():
    plan = make_plan(TokenGrid(9, 8), 3, 2)
    q, k, v = make_tensors(plan, images=2, heads=6, key_heads=2)
    expected = attend_densely(plan, q, k, v, None, 0.3)
    torch.testing.assert_close(attend_windows(plan, q, k, v, None, 0.3), expected)


@pytest.mark.parametrize("images", [1, 2])
def test_tensors_may_be_views_of_joined_heads(images):
    plan = make_plan(TokenGrid(9, 8), 3, 2)
    q, k, v = make_tensors(plan, images, heads=3, key_heads=3)
    views = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v))
    expected = attend_windows(plan, q, k, v, None, 0.3)
    torch.testing.assert_close(attend_windows(plan, *views, None, 0.3), expected)
