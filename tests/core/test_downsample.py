import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from token_merge.tome_core import DownsamplePlan, TokenGrid, seeded_generator
from token_merge.tome_core.settings import CHOOSING_METHODS, METHODS

grids = st.builds(TokenGrid, height=st.integers(1, 13), width=st.integers(1, 13))


def plan(grid: TokenGrid, factor: float, method: str) -> DownsamplePlan:
    return DownsamplePlan.of(grid, grid.downsampled(factor), method, seeded_generator(0))


@given(grids, st.floats(1.0, 8.0), st.sampled_from(METHODS), st.integers(1, 2))
def test_any_factor_fits_any_grid(grid, factor, method, batch):
    x = torch.randn(batch, grid.tokens, 3)
    smaller = plan(grid, factor, method).merge(x)
    assert smaller.shape == (batch, grid.downsampled(factor).tokens, 3)


@pytest.mark.parametrize("method", METHODS)
def test_a_factor_of_one_is_the_identity(method):
    x = torch.randn(1, 12, 3)
    assert plan(TokenGrid(3, 4), 1.0, method).merge(x) is x


@given(grids, st.floats(1.0, 8.0), st.sampled_from([*CHOOSING_METHODS, "max"]))
def test_choosing_methods_only_return_values_that_were_there(grid, factor, method):
    x = torch.randperm(grid.tokens).reshape(1, -1, 1).float()
    chosen = plan(grid, factor, method).merge(x)
    assert set(chosen.flatten().tolist()) <= set(x.flatten().tolist())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_half_precision(method, dtype):
    x = torch.randn(1, 35, 8)
    made = plan(TokenGrid(5, 7), 1.7, method)
    half = made.merge(x.to(dtype))
    assert half.dtype == dtype
    torch.testing.assert_close(half.float(), made.merge(x), atol=3e-2, rtol=3e-2)


def test_frames_are_downsampled_in_space_alone():
    grid = TokenGrid(4, 4, frames=3)
    x = torch.arange(48.0).reshape(1, 48, 1)
    first = plan(grid, 2.0, "nearest").merge(x).flatten().tolist()
    assert first == [frame * 16 + n for frame in range(3) for n in (0, 2, 8, 10)]
