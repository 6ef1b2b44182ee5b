import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from token_merge.tome_core.grid import TokenGrid

grids = st.builds(
    TokenGrid, height=st.integers(1, 9), width=st.integers(1, 9), frames=st.integers(1, 3)
)


@given(grids, st.integers(1, 3), st.integers(1, 4))
def test_flatten_undoes_unflatten(grid, batch, channels):
    x = torch.randn(batch, grid.tokens, channels)
    assert torch.equal(grid.flatten(grid.unflatten(x)), x)


def test_tokens_lie_in_raster_order():
    grid = TokenGrid(height=2, width=3)
    x = torch.arange(6.0).reshape(1, 6, 1)
    assert grid.unflatten(x)[0, 0].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_sequence_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"sequence has 5 tokens, expected 6 on 2x3"):
        TokenGrid(2, 3).unflatten(torch.zeros(1, 5, 1))


def test_an_empty_side_is_refused():
    with pytest.raises(ValueError, match="height is 0, expected at least 1"):
        TokenGrid(0, 3)


@given(grids, st.floats(1.0, 8.0))
def test_a_downsampled_grid_is_never_empty_and_never_larger(grid, factor):
    smaller = grid.downsample(factor)
    assert 1 <= smaller.height <= grid.height
    assert 1 <= smaller.width <= grid.width
    assert smaller.frames == grid.frames


@pytest.mark.parametrize(("side", "factor", "smaller"), [(33, 1.1, 30), (18, 18 / 14, 14)])
def test_a_side_that_a_factor_divides_loses_nothing_to_rounding(side, factor, smaller):
    assert TokenGrid(side, side, side).downsample(factor, factor) == TokenGrid(*[smaller] * 3)
