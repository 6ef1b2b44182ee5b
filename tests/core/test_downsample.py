import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.layers import LayerTokens, plan_layer
from token_merge.tome_core import DownsampleSettings, Draws, Stream, TokenGrid
from token_merge.tome_core.downsampling.settings import METHODS

CHOOSING = ("stratified", "interleaved", "nearest-exact", "nearest")
GRIDS = st.builds(TokenGrid, height=st.integers(2, 13), width=st.integers(2, 13))


def plan(grid: TokenGrid, factor: float, method: str):
    settings = DownsampleSettings(factor=factor, method=method)
    draws = Draws((0,), torch.device("cpu"))
    return plan_layer(settings, LayerTokens(Stream(grid), pytest.fail, draws))


@given(GRIDS, st.floats(2.0, 8.0), st.sampled_from(METHODS), st.integers(1, 2))
def test_any_factor_fits_any_grid(grid, factor, method, batch):
    x = torch.randn(batch, grid.tokens, 3)
    made = plan(grid, factor, method)
    keys = grid.downsample(factor).tokens
    assert made.keys_read == keys
    assert made.merge(x).shape == made.choose(x).shape == (batch * made.groups, keys, 3)


@given(GRIDS, st.floats(2.0, 8.0), st.sampled_from([*CHOOSING, "max"]))
def test_choosing_methods_only_return_values_that_were_there(grid, factor, method):
    x = torch.randperm(grid.tokens).reshape(1, -1, 1).float()
    chosen = plan(grid, factor, method).merge(x)
    assert set(chosen.flatten().tolist()) <= set(x.flatten().tolist())


@pytest.mark.parametrize("method", METHODS)
def test_heads_that_are_split_off_give_what_joined_heads_give(method):
    made = plan(TokenGrid(6, 8), 2.0, method)
    x = torch.randn(2, 3, 48, 4)
    joined = made.merge(x.transpose(1, 2).flatten(2))
    assert torch.equal(made.merge(x).transpose(1, 2).flatten(2), joined)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_half_precision(method, dtype):
    x = torch.randn(1, 35, 8)
    made = plan(TokenGrid(5, 7), 1.7, method)
    half = made.merge(x.to(dtype))
    assert half.dtype == dtype
    torch.testing.assert_close(half.float(), made.merge(x), atol=3e-2, rtol=3e-2)


def test_frames_are_downsampled_in_space_only():
    grid = TokenGrid(4, 4, frames=3)
    x = torch.arange(48.0).reshape(1, 48, 1)
    first = plan(grid, 2.0, "nearest").merge(x).flatten().tolist()
    assert first == [frame * 16 + n for frame in range(3) for n in (0, 2, 8, 10)]
