"""A token grid cut into equal tiles, for work that is batched over small neighbourhoods."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from ..grid import TokenGrid


@dataclass(frozen=True)
class Tiling:
    """Tiles of ``height`` x ``width`` tokens, in raster order; the last ones may reach beyond
    the grid and are then padded.
    """

    grid: TokenGrid
    height: int
    width: int

    @cached_property
    def rows(self) -> int:
        return -(-self.grid.height // self.height)

    @cached_property
    def columns(self) -> int:
        return -(-self.grid.width // self.width)

    @cached_property
    def tiles(self) -> int:
        """Tiles of one image, all frames counted."""
        return self.grid.frames * self.rows * self.columns

    def fold(self, x: Tensor) -> Tensor:
        """(B, N, C) -> (B, tiles, height·width, C), zeros where a tile reaches beyond."""
        grid = self.grid
        picture = rearrange(
            x, "b (f h w) c -> (b f) h w c", f=grid.frames, h=grid.height, w=grid.width
        )
        below = self.rows * self.height - grid.height
        right = self.columns * self.width - grid.width
        if below or right:
            picture = F.pad(picture, (0, 0, 0, right, 0, below))
        return rearrange(
            picture,
            "(b f) (r h) (k w) c -> b (f r k) (h w) c",
            f=grid.frames,
            h=self.height,
            w=self.width,
        )

    def unfold(self, tiles: Tensor) -> Tensor:
        """(B, tiles, height·width, C) -> (B, N, C), padding dropped."""
        grid = self.grid
        picture = rearrange(
            tiles,
            "b (f r k) (h w) c -> b f (r h) (k w) c",
            f=grid.frames,
            r=self.rows,
            h=self.height,
        )
        picture = picture[:, :, : grid.height, : grid.width]
        return rearrange(picture, "b f h w c -> b (f h w) c")

    def number_tokens(self, device: torch.device) -> Tensor:
        """The number of each tile's tokens, -1 for padding. (tiles, height·width) int64."""
        numbers = torch.arange(1, self.grid.tokens + 1, device=device)[None, :, None]
        return self.fold(numbers)[0, :, :, 0] - 1


def balance_side(side: int, most: int) -> int:
    """The side of a tile, at most ``most``, so that the fewest tiles cover ``side`` evenly."""
    return math.ceil(side / math.ceil(side / most))
