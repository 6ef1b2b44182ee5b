"""Key and value downsampling on the token grid, ToDo (arXiv 2402.13573)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from .cells import Cells
from .grid import TokenGrid
from .settings import CHOOSING_METHODS, DownsampleMethod


@dataclass(frozen=True)
class DownsamplePlan:
    """Tokens of ``grid`` resampled to those of ``smaller``, which spans the same picture.

    chosen: (M,) int64, tokens that stand for their cells where none may be averaged.
    There is no way back: queries stay whole.
    """

    grid: TokenGrid
    smaller: TokenGrid
    method: DownsampleMethod
    chosen: Tensor

    @classmethod
    def of(
        cls,
        grid: TokenGrid,
        smaller: TokenGrid,
        method: DownsampleMethod,
        generator: torch.Generator,
    ) -> DownsamplePlan:
        """generator: a CPU generator of the caller's; draws the tokens of "stratified".

        "interleaved" is "stratified" here: of a single group of queries.
        """
        cells = Cells(grid, smaller)
        if method in ("stratified", "interleaved"):
            chosen = cells.drawn(1, generator)[0]
        else:
            chosen = cells.nearest(centred=method != "nearest")
        return cls(grid, smaller, method, chosen)

    def merge(self, x: Tensor) -> Tensor:
        """ToDo sec. 3.2 with its published interpolation modes. (B, N, C) -> (B, M, C).

        "max" keeps the largest value of each cell, per channel. Frames are chosen, never mixed.
        """
        smaller = self.smaller
        if smaller == self.grid:
            return x
        if self.method in CHOOSING_METHODS:
            return x.index_select(1, self.chosen.to(x.device, non_blocking=True))  # (B, M, C)
        size = (smaller.height, smaller.width)
        kept_frames = replace(self.grid, frames=smaller.frames)
        if kept_frames != self.grid:
            frames = Cells(self.grid, kept_frames).nearest(centred=True)
            x = x.index_select(1, frames.to(x.device, non_blocking=True))  # (B, F'·H·W, C)
        image = kept_frames.unflatten(x)  # (B·F', C, H, W)
        if self.method == "max":
            return smaller.flatten(F.adaptive_max_pool2d(image, size))
        return smaller.flatten(F.interpolate(image, size=size, mode=self.method))
