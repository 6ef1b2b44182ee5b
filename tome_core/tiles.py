"""A token grid cut into equal tiles, for work that is batched over small neighbourhoods."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from .grid import TokenGrid


@dataclass(frozen=True)
class Tiling:
    """Tiles of ``height`` x ``width`` tokens, in raster order; the last ones may reach beyond
    the grid and are then padded.
    """

    grid: TokenGrid
    height: int
    width: int

    @property
    def rows(self) -> int:
        return -(-self.grid.height // self.height)

    @property
    def columns(self) -> int:
        return -(-self.grid.width // self.width)

    @property
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

    def inside(self, device: torch.device) -> Tensor:
        """True where a tile holds a token and not padding, (tiles, height·width)."""
        tokens = torch.ones(1, self.grid.tokens, 1, dtype=torch.bool, device=device)
        return self.fold(tokens)[0, :, :, 0]


def balanced_side(side: int, most: int) -> int:
    """The side of tiles that cut ``side`` into the fewest of at most ``most``, evenly."""
    return math.ceil(side / math.ceil(side / most))
