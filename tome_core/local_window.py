"""Local windows: queries near each other share a box of keys around them that all stay exact.

Attention is strongest between neighbours, so an error there costs most. The rest of the picture is
read through one drawn key of each cell. Exact keys in a box around a tile of queries are sliding
tile attention (arXiv 2502.04507, sec. 3); reading the rest approximately instead of not at all is
what piecewise sparse attention does (arXiv 2602.01077).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import TypeVar

import torch
from torch import Tensor

from .grid import TokenGrid
from .streams import Stream

Sides = tuple[int, int, int]
"""Frames, height and width."""

T = TypeVar("T", int, Tensor)


@dataclass(frozen=True, eq=False)
class LocalWindow:
    """Tiles of queries that cover a picture, and the box of keys around each tile.

    All boxes have one size; they are moved inward at the grid's borders. Tiles that are smaller
    than others name their last tokens twice. Tokens are numbered within the whole stream.

    Args:
        queries: (T, Q) int64, the tokens of each tile.
        near: (T, K) int64, the tokens of its box.
        others: (n,) int64, the tokens that are not of the picture.
        cells: (T, C) int64, those cells, whose tokens are kept, that reach into its box.
        spans: (t + y + x, N) bool, which tokens of the picture lie between the first and the last
            frame of a box, then between its rows, then between its columns; T is t·y·x.
        spans_of: (3, T) int64, the three spans of each tile's box.
        tiles_in_time: t, how many tiles lie one behind the other at one place.
    """

    queries: Tensor
    near: Tensor
    others: Tensor
    cells: Tensor
    spans: Tensor
    spans_of: Tensor
    tiles_in_time: int

    @property
    def tiles(self) -> int:
        return len(self.queries)

    def find_inside(self, tiles: Tensor, numbers: Tensor) -> Tensor:
        """Which of these tokens lie in the box of each tile.

        tiles: (t,) int64. numbers: (H, t, n) int64, within the picture. Returns (H, t, n) bool.
        """
        spans = self.spans_of.index_select(1, tiles)[:, None, :, None]  # (3, 1, t, 1)
        return self.spans[spans, numbers].all(dim=0)


def fit_box(grid: TokenGrid, side: int) -> Sides:
    """Sides of a box that is at most ``side`` long, and at most half as long as the grid.

    In time it is two fifths as long: a frame of a video model's latent is several of the video.
    """
    wanted = ceil(side * 2 / 5), side, side
    frames, height, width = (
        min(each, ceil(length / 2)) for each, length in zip(wanted, grid.sides, strict=True)
    )
    return frames, height, width


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def place_windows(
    stream: Stream, smaller: TokenGrid, box: Sides, device: torch.device
) -> LocalWindow:
    """Tiles that cover the picture, each in the middle of its box.

    The margin around a tile is a sixth of its box, rounded up. With wider margins more keys are
    copied for each query, and little is gained, see docs/tried.md. smaller: the grid of the kept
    tokens.
    """
    grid = stream.grid
    tiles, boxes, cells = [], [], []
    for length, fewer, side in zip(grid.sides, smaller.sides, box, strict=True):
        count = ceil(length / max(1, side - 2 * ceil(side / 6)))
        tile = ceil(length / count)
        margin = (side - tile) // 2
        own = min(length, tile + 2 * margin)
        bounds = torch.arange(count + 1, device=device)[:, None] * length // count
        start, end = bounds[:-1], bounds[1:]
        first = (start - margin).clamp(0, length - own)
        tiles.append((start + torch.arange(tile, device=device)).minimum(end - 1))
        boxes.append(first + torch.arange(own, device=device))
        begins = (min(max(0, i * length // count - margin), length - own) for i in range(count))
        reached = max(_count_reached(each, own, length, fewer) for each in begins)
        first_cell = _find_cell(first, length, fewer).clamp(max=fewer - reached)
        cells.append(first_cell + torch.arange(reached, device=device))
    queries, near = _number_tokens(grid, tiles), _number_tokens(grid, boxes)
    places = torch.cartesian_prod(*(torch.arange(side, device=device) for side in grid.sides)).T
    spans = [
        (axis >= own[:, :1]) & (axis <= own[:, -1:])  # (boxes along the axis, N)
        for axis, own in zip(places, boxes, strict=True)
    ]
    counts = [len(own) for own in boxes]
    firsts = 0, counts[0], counts[0] + counts[1]
    spans_of = torch.cartesian_prod(
        *(torch.arange(n, device=device) + first for n, first in zip(counts, firsts, strict=True))
    ).T
    return LocalWindow(
        queries + stream.before,
        near + stream.before,
        stream.number_others(device),
        _number_tokens(smaller, cells),
        torch.cat(spans),
        spans_of.contiguous(),
        counts[0],
    )


def _find_cell(token: T, length: int, cells: int) -> T:
    """The cell that holds a token, along one axis: cell i begins with i * length // cells.

    length, cells: tokens and cells along the axis.
    """
    return (token * cells + cells - 1) // length


def _count_reached(first: int, own: int, length: int, cells: int) -> int:
    """How many cells ``own`` tokens from ``first`` on reach into, along one axis."""
    return _find_cell(first + own - 1, length, cells) - _find_cell(first, length, cells) + 1


def _number_tokens(grid: TokenGrid, places: list[Tensor]) -> Tensor:
    """Tokens of boxes that are given axis by axis.

    places: the frames, rows and columns of each, (F, f), (Y, y) and (X, x). Returns
    (F·Y·X, f·y·x).
    """
    frame, row, column = places
    lines = frame[:, None, :, None] * grid.height + row[None, :, None, :]  # (F, Y, f, y)
    numbers = lines[:, :, None, :, :, None] * grid.width + column[:, None, None, :]
    return numbers.flatten(0, 2).flatten(1)  # from (F, Y, X, f, y, x)
