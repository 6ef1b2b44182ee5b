"""Local windows: queries near each other share a box of keys around them that all stay exact.

Attention is strongest between neighbours, so an error there costs most. The rest of the picture is
read through one drawn key of each cell. Exact keys in a box around a tile of queries are sliding
tile attention (arXiv 2502.04507, sec. 3); reading the rest approximately instead of not at all is
what piecewise sparse attention does (arXiv 2602.01077).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil

import torch
import torch.nn.functional as F
from torch import Tensor

from .downsample import size_slots
from .grid import TokenGrid
from .partial_attention import MASKED
from .streams import Stream

Sides = tuple[int, int, int]
"""Frames, height and width."""


@dataclass(frozen=True, eq=False)
class LocalWindow:
    """Tiles of queries that cover a grid, and the box of keys around each tile.

    All boxes have one size; they are moved inward at the grid's borders. Tiles that are smaller
    than others name their last tokens twice.

    Args:
        queries: (T, Q) int64, the tokens of each tile.
        near: (T, K) int64, the tokens of its box.
        first: (T, 3) int64, frame, row and column of the box's first token.
        box: (3,) int64, sides of the box.
        places: (N, 3) int64, frame, row and column of every token of the grid.
        tiles_in_time: of tiles at one place, one behind the other.
    """

    queries: Tensor
    near: Tensor
    first: Tensor
    box: Tensor
    places: Tensor
    tiles_in_time: int

    @property
    def tiles(self) -> int:
        return len(self.queries)

    def find_inside(self, tiles: Tensor, numbers: Tensor) -> Tensor:
        """Which of these tokens lie in these tiles' boxes. (t,), (M,) int64 -> (t, M) bool."""
        offset = self.places[numbers] - self.first[tiles, None]  # (t, M, 3)
        return ((offset >= 0) & (offset < self.box)).all(dim=-1)


@dataclass(frozen=True, eq=False)
class WindowPlan:
    """Keys near a tile of queries are whole, one drawn key stands for each cell beyond.

    The kept keys are drawn several times. Each tile reads one of these draws, so that not all
    queries have the same error. All tokens that are not of the picture are read by every query.
    Their own queries read the first draw, for the whole picture.

    Args:
        stream: the sequence that attention reads.
        smaller: the grid of the kept tokens.
        kept: (S, M) int64, their numbers within the picture, for each draw.
        order: (T,) int64, the tiles in random order; they are dealt out to the S draws.
        window: the tiles and the boxes around them.

    Keys get their weights where attention is computed, so there are no ``sizes`` to be added.
    """

    stream: Stream
    smaller: TokenGrid
    kept: Tensor
    order: Tensor
    window: LocalWindow

    groups = 1
    sizes = None

    @property
    def slots(self) -> int:
        """Keys that a query reads, the mean over all queries."""
        stream, near = self.stream, self.window.near.shape[1]
        share = stream.grid.tokens / stream.length
        # Of the kept keys, those in the box are read with it.
        drawn = self.smaller.tokens * (1 - share * near / stream.grid.tokens)
        return round(share * near + drawn) + stream.others

    @cached_property
    def weights(self) -> Tensor:
        """What is added to the scores of the keys of one draw: the log of their sizes.

        (1, M + others) float32.
        """
        return size_slots(self.stream, self.smaller, self.kept.device).log()

    def deal_tiles(self) -> tuple[Tensor, ...]:
        """The tiles that read each draw: S tensors, each (T / S,) int64."""
        return self.order.tensor_split(len(self.kept))

    def weigh_beyond(self, tiles: Tensor, kept: Tensor) -> Tensor:
        """``weights`` for each tile, ``MASKED`` for keys that its box holds.

        tiles: (t,) int64. kept: (M,) int64. Returns (t, M + others) float32.
        """
        inside = self.window.find_inside(tiles, kept)
        padded = F.pad(inside, (self.stream.before, self.stream.after))
        return self.weights.masked_fill(padded, MASKED)


def fit_box(grid: TokenGrid, side: int) -> Sides:
    """Sides of a box that is at most ``side`` long, and at most half as long as the grid.

    In time it is a quarter as long: a frame of a video model's latent is several of the video.
    """
    wanted = ceil(side / 4), side, side
    frames, height, width = (
        min(each, ceil(length / 2)) for each, length in zip(wanted, grid.sides, strict=True)
    )
    return frames, height, width


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def place_windows(grid: TokenGrid, box: Sides, device: torch.device) -> LocalWindow:
    """Tiles of half a box's sides that cover the grid, each in the middle of its box."""
    tiles, boxes, sides = [], [], []
    for length, side in zip(grid.sides, box, strict=True):
        count = ceil(length / max(1, side // 2))
        bounds = torch.arange(count + 1, device=device) * length // count
        start, end = bounds[:-1, None], bounds[1:, None]
        tile = ceil(length / count)
        tiles.append((start + torch.arange(tile, device=device)).minimum(end - 1))
        margin = (side - tile) // 2
        own = min(length, tile + 2 * margin)
        first = (start - margin).clamp(0, length - own)
        boxes.append(first + torch.arange(own, device=device))
        sides.append(own)
    firsts = torch.cartesian_prod(*(each[:, 0] for each in boxes))  # (T, 3)
    queries, near = _number_tokens(grid, tiles), _number_tokens(grid, boxes)
    # Filled on the device: a tensor of numbers of the host would be copied to it.
    box_sides = torch.stack([torch.full((), side, device=device) for side in sides])
    places = torch.cartesian_prod(*(torch.arange(side, device=device) for side in grid.sides))
    return LocalWindow(queries, near, firsts, box_sides, places, len(tiles[0]))


def _number_tokens(grid: TokenGrid, places: list[Tensor]) -> Tensor:
    """Tokens of boxes that are given axis by axis.

    places: the frames, rows and columns of each, (F, f), (Y, y) and (X, x). Returns
    (F·Y·X, f·y·x).
    """
    frame, row, column = places
    lines = frame[:, None, :, None] * grid.height + row[None, :, None, :]  # (F, Y, f, y)
    numbers = lines[:, :, None, :, :, None] * grid.width + column[:, None, None, :]
    return numbers.flatten(0, 2).flatten(1)  # from (F, Y, X, f, y, x)
