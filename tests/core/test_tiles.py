import torch
from hypothesis import given
from hypothesis import strategies as st
from token_merge.tome_core.grid import TokenGrid
from token_merge.tome_core.merging.tiles import Tiling, balance_side


@st.composite
def tilings(draw):
    grid = TokenGrid(draw(st.integers(1, 9)), draw(st.integers(1, 9)), draw(st.integers(1, 2)))
    return Tiling(grid, draw(st.integers(1, 5)), draw(st.integers(1, 5)))


@given(tilings(), st.integers(1, 3))
def test_unfold_undoes_fold(tiling, batch):
    x = torch.randn(batch, tiling.grid.tokens, 2)
    folded = tiling.fold(x)
    assert folded.shape == (batch, tiling.tiles, tiling.height * tiling.width, 2)
    assert torch.equal(tiling.unfold(folded), x)


@given(tilings())
def test_padding_is_marked_and_zero(tiling):
    inside = tiling.number_tokens(torch.device("cpu")) >= 0
    assert inside.sum() == tiling.grid.tokens
    assert not tiling.fold(torch.ones(1, tiling.grid.tokens, 1))[0, :, :, 0][~inside].any()


def test_a_tile_holds_neighbours():
    tiling = Tiling(TokenGrid(4, 6), 2, 3)
    tokens = torch.arange(24).reshape(1, 24, 1)
    assert tiling.fold(tokens)[0, 1, :, 0].tolist() == [3, 4, 5, 9, 10, 11]


@given(st.integers(1, 500), st.integers(1, 40))
def test_balanced_tiles_are_as_few_as_possible_and_pad_less_than_one_each(side, most):
    tile = balance_side(side, most)
    tiles = -(-side // tile)
    assert tile <= most
    assert tiles <= -(-side // most)
    assert tiles * tile - side < tiles


@given(tilings())
def test_tokens_are_numbered_as_they_lie(tiling):
    numbers = tiling.number_tokens(torch.device("cpu"))
    tokens = torch.arange(tiling.grid.tokens)[None, :, None]
    assert torch.equal(tiling.unfold(numbers[None, :, :, None]), tokens)
