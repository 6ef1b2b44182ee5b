"""One axis of a grid with local windows: tiles of queries, and a box of keys around each tile."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod
from typing import Literal

import torch
from torch import Tensor

from ..constants import constant
from ..grid import TokenGrid
from ..tokens import find_first_places

Reach = Literal["in", "out", "all"]
"""It says where along an axis keys lie: in a tile's box, out of it, or anywhere."""


@dataclass(frozen=True)
class TiledAxis:
    """Frames, rows or columns of a grid.

    The axis is a ring. Sliding tile attention moves a box at the border back into the picture
    instead; here it goes on at the other end. So all boxes have one size, no key is read twice, and
    the keys out of a box follow each other like those in it. A last tile that reaches over the end
    holds the first queries once more.

    Args:
        length: tokens along the axis.
        tile: queries of a tile.
        box: keys around each tile that stay exact.
    """

    length: int
    tile: int
    box: int

    @classmethod
    def fit(cls, length: int, side: int, times: float = 1.0) -> TiledAxis:
        """A box that is ``side`` long, and at most half as long as the axis.

        The margin around a tile is a sixth of its box, rounded up. With wider margins more keys
        are read for each query, and little is gained, see docs/tried.md. times: a tile is so many
        times as long, if its box is then not longer than half of the axis.
        """
        box = min(side, ceil(length / 2))
        tile = max(1, box - 2 * ceil(box / 6))
        # Rounded first, so that 2.9999... is 3.
        longer = int(round(times * tile, 1))
        if longer > tile and box + longer - tile <= length / 2:
            tile, box = longer, box + longer - tile
        return cls(length, ceil(length / ceil(length / tile)), box)

    @property
    def tiles(self) -> int:
        return ceil(self.length / self.tile)

    @property
    def is_split(self) -> bool:
        """False where every box is the whole axis."""
        return self.box < self.length

    def count_keys(self, reach: Reach) -> int:
        """How many tokens of the axis lie there, for each tile."""
        return {"in": self.box, "out": self.length - self.box, "all": self.length}[reach]

    def find_first(self, reach: Reach, tile: Tensor) -> Tensor:
        """Where the keys of each tile begin; it may be before 0 or behind the end. As ``tile``."""
        if reach == "all":
            return torch.zeros_like(tile)
        start = tile * self.tile - (self.box - self.tile) // 2
        return start + self.box if reach == "out" else start


Axes = tuple[TiledAxis, TiledAxis, TiledAxis]
"""They are those of frames, rows and columns."""


def fit_axes(grid: TokenGrid, side: int, at_once: int = 1, kept_share: float = 1.0) -> Axes:
    """In time a box is two fifths as long: a frame of a video's latent is several of the video.

    Tiles are higher where a kernel would compute more queries than they have. Most sets are
    copied once for each row of tiles, so higher ones need fewer copies than wider ones.

    at_once: how many queries the kernel computes at once. kept_share: of a tile's queries, how
    many merging keeps; tiles are so much higher that as many are kept as without merging.
    """
    axes = [
        TiledAxis.fit(length, each)
        for length, each in zip(grid.sides, (ceil(side * 2 / 5), side, side), strict=True)
    ]
    queries = axes[0].tile * axes[1].tile * axes[2].tile
    times = ceil(at_once / queries) / kept_share
    return axes[0], TiledAxis.fit(grid.height, side, times), axes[2]


@constant
def number_queries(axes: Axes, device: torch.device) -> tuple[Tensor, Tensor]:
    """The picture's tokens of each tile, (T, Q), and where each is found first, (N,). int64."""
    numbers = torch.zeros(1, 1, dtype=torch.int64, device=device)
    for axis in axes:
        own = torch.arange(axis.tiles * axis.tile, device=device) % axis.length
        own = own.view(axis.tiles, 1, axis.tile)
        numbers = numbers[:, None, :, None] * axis.length + own
        numbers = numbers.flatten(2, 3).flatten(0, 1)  # (tiles, queries), of all axes until now
    return numbers, find_first_places(numbers.flatten(), prod(axis.length for axis in axes))
