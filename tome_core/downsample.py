"""Key and value downsampling on the token grid, ToDo (arXiv 2402.13573)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from .grid import TokenGrid
from .settings import DownsampleMethod


@dataclass(frozen=True)
class DownsamplePlan:
    """Tokens of ``grid`` resampled to ``grid.downsampled(factor)``.

    Fractional factors and sides that the factor does not divide are fine: the smaller grid
    always spans the whole picture. There is no way back: queries stay whole.
    """

    grid: TokenGrid
    factor: float
    method: DownsampleMethod

    @property
    def smaller(self) -> TokenGrid:
        """The grid that remains."""
        return self.grid.downsampled(self.factor)

    def merge(self, x: Tensor) -> Tensor:
        """ToDo sec. 3.2 with its published interpolation modes. (B, N, C) -> (B, M, C).

        "max" keeps the largest value of each cell, per channel.
        """
        smaller = self.smaller
        if smaller == self.grid:
            return x
        if self.method in ("nearest-exact", "nearest"):
            chosen = nearest_tokens(self.grid, smaller, centred=self.method == "nearest-exact")
            return x.index_select(1, chosen.to(x.device, non_blocking=True))  # (B, M, C)
        size = (smaller.height, smaller.width)
        image = self.grid.unflatten(x)  # (B·F, C, H, W)
        if self.method == "max":
            return smaller.flatten(F.adaptive_max_pool2d(image, size))
        return smaller.flatten(F.interpolate(image, size=size, mode=self.method))


def nearest_tokens(grid: TokenGrid, smaller: TokenGrid, *, centred: bool) -> Tensor:
    """Token numbers on ``grid`` that nearest-neighbour downsampling keeps. (M,) int64.

    centred: pick at cell centres ("nearest-exact") instead of cell corners ("nearest"). Choosing
    rows by index never moves the tokens that are dropped, and keeps keys exact.
    """

    def picks(side: int, smaller_side: int) -> Tensor:
        cell = torch.arange(smaller_side)
        if centred:
            return (2 * cell + 1) * side // (2 * smaller_side)
        return cell * side // smaller_side

    frame = torch.arange(grid.frames)[:, None, None]
    y = picks(grid.height, smaller.height)[:, None]
    x = picks(grid.width, smaller.width)
    return ((frame * grid.height + y) * grid.width + x).flatten()
