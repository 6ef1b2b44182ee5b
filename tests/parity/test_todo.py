"""Same keys and values as ToDo's published code, which resamples by ``F.interpolate``."""

import pytest
import torch
import torch.nn.functional as F
from einops import rearrange
from support.layers import LayerTokens, plan_layer
from token_merge.tome_core import DownsampleSettings, Draws, Stream, TokenGrid


def resampled(x: torch.Tensor, grid: TokenGrid, factor: float, method: str) -> torch.Tensor:
    settings = DownsampleSettings(factor=factor, method=method)
    layer = LayerTokens(Stream(grid), pytest.fail, Draws((0,), x.device))
    return plan_layer(settings, layer).merge(x)


def published(x: torch.Tensor, height: int, width: int, factor: int, method: str) -> torch.Tensor:
    """The resampling of ToDo's repository, for the sides and factors it accepts."""
    image = rearrange(x, "b (h w) c -> b c h w", h=height, w=width)
    image = F.interpolate(image, scale_factor=(1 / factor, 1 / factor), mode=method)
    return rearrange(image, "b c h w -> b (h w) c")


@pytest.mark.parametrize("method", ["nearest-exact", "nearest", "bilinear", "bicubic", "area"])
@pytest.mark.parametrize("factor", [2, 3, 4])
@pytest.mark.parametrize(("height", "width"), [(12, 12), (24, 12), (12, 36)])
def test_sides_that_divide_give_the_published_values(method, factor, height, width):
    x = torch.randn(2, height * width, 5)
    ours = resampled(x, TokenGrid(height, width), float(factor), method)
    theirs = published(x, height, width, factor, method)
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)


@pytest.mark.parametrize("method", ["nearest-exact", "nearest", "bilinear", "bicubic", "area"])
@pytest.mark.parametrize("factor", [1.5, 2.0, 2.7])
@pytest.mark.parametrize(("height", "width"), [(13, 7), (5, 31), (1, 9)])
def test_other_sides_give_what_resizing_to_the_smaller_grid_gives(method, factor, height, width):
    x = torch.randn(2, height * width, 5)
    grid = TokenGrid(height, width)
    smaller = grid.downsample(factor)
    size = (smaller.height, smaller.width)
    theirs = smaller.flatten(F.interpolate(grid.unflatten(x), size=size, mode=method))
    torch.testing.assert_close(resampled(x, grid, factor, method), theirs)


def test_max_keeps_the_largest_value_of_each_cell():
    x = torch.arange(16.0).reshape(1, 16, 1)
    assert resampled(x, TokenGrid(4, 4), 2.0, "max").flatten().tolist() == [5, 7, 13, 15]
