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
from .partial_attention import find_masked, make_bias
from .streams import Stream

Sides = tuple[int, int, int]
"""Frames, height and width."""


@dataclass(frozen=True, eq=False)
class LocalWindow:
    """Tiles of queries that cover a picture, and the box of keys around each tile.

    All boxes have one size; they are moved inward at the grid's borders. Tiles that are smaller
    than others name their last tokens twice. Tokens are numbered within the whole stream.

    Args:
        queries: (T, Q) int64, the tokens of each tile.
        near: (T, K) int64, the tokens of its box.
        others: (n,) int64, the tokens that are not of the picture.
        spans: (t + y + x, L) bool, which tokens lie between the first and the last frame of a box,
            then between its rows, then between its columns; T is t·y·x.
        counts: t, y and x.
    """

    queries: Tensor
    near: Tensor
    others: Tensor
    spans: Tensor
    counts: Sides

    @property
    def tiles(self) -> int:
        return len(self.queries)

    @property
    def tiles_in_time(self) -> int:
        """Of tiles at one place, one behind the other."""
        return self.counts[0]

    def find_inside(self, numbers: Tensor) -> Tensor:
        """Which of these tokens lie in each tile's box. (n,) int64 -> (T, n) bool."""
        frames, rows, columns = self.spans.index_select(1, numbers).split(self.counts)
        inside = frames[:, None, None] & rows[:, None] & columns  # (t, y, x, n)
        return inside.flatten(0, 2)


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
    def numbers(self) -> Tensor:
        """The keys of each draw, within the stream. (S, M + others) int64."""
        return self.stream.extend_numbers(self.kept, self.stream.length)

    def weigh(self, dtype: torch.dtype) -> Tensor:
        """What is added to the scores of the keys of one draw: the log of their sizes.

        (1, M + others).
        """
        return _weigh_slots(self.stream, self.smaller, dtype, self.kept.device)

    def weigh_beyond(self, draw: int, tiles: Tensor, dtype: torch.dtype) -> Tensor:
        """``weigh`` for each of these tiles, ``MASKED`` for keys that its box holds.

        tiles: (t,) int64. Returns (t, M + others).
        """
        inside = self.window.find_inside(self.numbers[draw]).index_select(0, tiles)
        weights = self.weigh(dtype)
        out = make_bias(len(tiles), weights.shape[1], dtype, inside.device)
        return torch.where(inside, _make_masked(dtype, inside.device), weights, out=out)

    def deal_tiles(self) -> tuple[Tensor, ...]:
        """The tiles that read each draw: S tensors, each (T / S,) int64."""
        return self.order.tensor_split(len(self.kept))


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def _weigh_slots(
    stream: Stream, smaller: TokenGrid, dtype: torch.dtype, device: torch.device
) -> Tensor:
    sizes = size_slots(stream, smaller, device)
    return make_bias(1, sizes.shape[1], dtype, device).copy_(sizes.log())


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def _make_masked(dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.full((1, 1), find_masked(dtype), dtype=dtype, device=device)


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
def place_windows(stream: Stream, box: Sides, device: torch.device) -> LocalWindow:
    """Tiles of half a box's sides that cover the picture, each in the middle of its box."""
    grid = stream.grid
    tiles, boxes = [], []
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
    queries, near = _number_tokens(grid, tiles), _number_tokens(grid, boxes)
    places = torch.cartesian_prod(*(torch.arange(side, device=device) for side in grid.sides)).T
    spans = [
        (axis >= own[:, :1]) & (axis <= own[:, -1:])  # (boxes along the axis, N)
        for axis, own in zip(places, boxes, strict=True)
    ]
    return LocalWindow(
        queries + stream.before,
        near + stream.before,
        stream.number_others(device),
        F.pad(torch.cat(spans), (stream.before, stream.after)),
        (len(boxes[0]), len(boxes[1]), len(boxes[2])),
    )


def _number_tokens(grid: TokenGrid, places: list[Tensor]) -> Tensor:
    """Tokens of boxes that are given axis by axis.

    places: the frames, rows and columns of each, (F, f), (Y, y) and (X, x). Returns
    (F·Y·X, f·y·x).
    """
    frame, row, column = places
    lines = frame[:, None, :, None] * grid.height + row[None, :, None, :]  # (F, Y, f, y)
    numbers = lines[:, :, None, :, :, None] * grid.width + column[:, None, None, :]
    return numbers.flatten(0, 2).flatten(1)  # from (F, Y, X, f, y, x)
