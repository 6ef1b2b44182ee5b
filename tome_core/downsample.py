"""Key and value downsampling on the token grid, ToDo (arXiv 2402.13573)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from .grid import TokenGrid
from .settings import DownsampleMethod


@dataclass(frozen=True)
class DownsamplePlan:
    """Tokens of ``grid`` resampled to ``grid.downsampled(factor, temporal_factor)``.

    Fractional factors and sides that the factor does not divide are fine: the smaller grid
    always spans the whole picture. There is no way back: queries stay whole.
    """

    grid: TokenGrid
    factor: float
    method: DownsampleMethod
    temporal_factor: float = 1.0

    @property
    def smaller(self) -> TokenGrid:
        """The grid that remains."""
        return self.grid.downsampled(self.factor, self.temporal_factor)

    @property
    def chosen(self) -> Tensor:
        """Tokens that stand for their cells where none may be averaged, (M,) int64.

        At the cells' corners with "nearest", else at their centres.
        """
        return nearest_tokens(self.grid, self.smaller, centred=self.method != "nearest")

    def merge(self, x: Tensor) -> Tensor:
        """ToDo sec. 3.2 with its published interpolation modes. (B, N, C) -> (B, M, C).

        "max" keeps the largest value of each cell, per channel. Frames are chosen, never mixed.
        """
        smaller = self.smaller
        if smaller == self.grid:
            return x
        if self.method in ("nearest-exact", "nearest"):
            return x.index_select(1, self.chosen.to(x.device, non_blocking=True))  # (B, M, C)
        size = (smaller.height, smaller.width)
        kept_frames = replace(self.grid, frames=smaller.frames)
        if kept_frames != self.grid:
            frames = nearest_tokens(self.grid, kept_frames, centred=True)
            x = x.index_select(1, frames.to(x.device, non_blocking=True))  # (B, F'·H·W, C)
        image = kept_frames.unflatten(x)  # (B·F', C, H, W)
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

    frame = picks(grid.frames, smaller.frames)[:, None, None]
    y = picks(grid.height, smaller.height)[:, None]
    x = picks(grid.width, smaller.width)
    return ((frame * grid.height + y) * grid.width + x).flatten()
