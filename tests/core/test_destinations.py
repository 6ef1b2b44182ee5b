import torch
from hypothesis import given
from hypothesis import strategies as st
from token_merge.tome_core import Draws, TokenGrid, choose_every_kth, choose_random, choose_strided
from token_merge.tome_core.merging.destinations import fit_strides

CPU = torch.device("cpu")


@st.composite
def cells(draw):
    stride_y, stride_x = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    height, width = draw(st.integers(stride_y, 11)), draw(st.integers(stride_x, 11))
    return TokenGrid(height, width, draw(st.integers(1, 2))), stride_y, stride_x


@given(cells(), st.integers(0, 99))
def test_every_cell_has_one_dst(cell, seed):
    grid, stride_y, stride_x = cell
    dst = choose_strided(*cell, Draws((seed,), CPU), CPU).flat
    frame, y, x = (
        dst // (grid.height * grid.width),
        dst // grid.width % grid.height,
        dst % grid.width,
    )
    cells_hit = set(
        zip(frame.tolist(), (y // stride_y).tolist(), (x // stride_x).tolist(), strict=True)
    )
    cells_there = grid.frames * (grid.height // stride_y) * (grid.width // stride_x)
    assert len(cells_hit) == dst.numel() == cells_there


def test_without_draws_the_first_token_of_each_cell_is_dst():
    assert choose_strided(TokenGrid(4, 5), 2, 2, None, CPU).flat.tolist() == [0, 2, 10, 12]


def test_every_kth_token_is_dst():
    assert choose_every_kth(11, 4, CPU).flat.tolist() == [3, 7]


@given(st.integers(2, 60), st.integers(1, 2), st.integers(0, 9))
def test_random_dst_tokens_are_as_many_as_asked_and_all_different(tokens, divisor, seed):
    dst = choose_random(tokens, tokens // divisor, Draws((seed,), CPU)).flat
    assert len(dst.unique()) == tokens // divisor
    assert ((dst >= 0) & (dst < tokens)).all()


def test_dst_tokens_depend_on_the_identity_only():
    grid = TokenGrid(16, 16)
    first, again, other = (
        choose_strided(grid, 2, 2, Draws(identity, CPU), CPU).flat
        for identity in ((1, 2), (1, 2), (12,))
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@given(cells(), st.integers(1, 99))
def test_strides_grow_until_few_enough_cells_are_left(cell, kept):
    grid, stride_y, stride_x = cell
    y, x = fit_strides(*cell, kept)
    assert grid.frames * (grid.height // y) * (grid.width // x) <= max(kept, grid.frames)
    if grid.frames * (grid.height // stride_y) * (grid.width // stride_x) <= kept:
        assert (y, x) == (stride_y, stride_x)
