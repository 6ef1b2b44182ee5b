"""Merging queries of local windows: similar ones read the keys out of their box together.

A query reads the keys near it for itself, since which of them matter changes from token to token.
To keys farther away, similar queries of a tile attend nearly alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from .cells import list_strided_cells
from .draws import Draws
from .grid import TokenGrid
from .tiled_axis import Axes
from .tokens import number_between, number_first, take_tokens

MOST_LEFT = 64
"""Queries of a strip. Our own kernel computes as many at once."""

LEAST_VARIANCE = 1e-12
"""Tokens whose channels vary less are like no other token."""


@dataclass(frozen=True, eq=False)
class MergedQueries:
    """Of the Q queries of each of S strips, M remain. Strips are whole rows of a tile.

    kept: (B, S, M) int64, their places in the strip. They need not follow each other in memory.
    slots: (B, S, Q) int64, which of the M each query of the strip reads far keys with.
    """

    kept: Tensor
    slots: Tensor

    @property
    def share(self) -> float:
        """Of the queries, how many remain."""
        return self.kept.shape[2] / self.slots.shape[2]

    @cached_property
    def _kept_rows(self) -> Tensor:
        """(B, S·M) int64, of all queries of all strips."""
        return _count_on(self.kept, self.slots.shape[2])

    @cached_property
    def _slot_rows(self) -> Tensor:
        """(B, S·Q) int64, of all queries that remain."""
        return _count_on(self.slots, self.kept.shape[2])

    def merge(self, q: Tensor) -> Tensor:
        """The queries that remain. (B, H, S·Q, D) -> (B, H, S·M, D)."""
        return take_tokens(q, self._kept_rows)

    def unmerge(self, y: Tensor) -> Tensor:
        """Give each query what its slot has. (B, H, S·M, D) -> (B, H, S·Q, D)."""
        return take_tokens(y, self._slot_rows)


def _count_on(places: Tensor, of_strip: int) -> Tensor:
    """Places within strips as places within all of them. (B, S, n) -> (B, S·n)."""
    return (places + number_first(places.shape[1], of_strip, places.device)).flatten(1)


@dataclass(frozen=True, eq=False)
class Strips:
    """S strips of Q queries, n of which are dst, before it is known which others are merged.

    numbers: (S, Q) int64, their tokens. places: (S, n) int64, where the dst are in their strip.
    left: M, how many queries of a strip remain.
    """

    numbers: Tensor
    places: Tensor
    left: int


def cut_strips(
    axes: Axes, numbers: Tensor, strides: tuple[int, int], share: float, draws: Draws | None
) -> Strips | None:
    """Strips of each tile, with one dst in each cell: ToMe for SD (arXiv 2303.17604) sec. 4.

    None where the dst leave no query to merge.

    Args:
        axes: of the tiles.
        numbers: (T, t·h·w) int64, the tokens of each tile.
        strides: height and width of a cell.
        share: of the queries that is merged away.
        draws: for a random dst of each cell; None takes the first.
    """
    rows, width = count_rows(axes, share), axes[2].tile
    numbers = numbers.view(-1, rows * width)  # (S, Q)
    strips, queries = numbers.shape
    places = _choose_places(TokenGrid(rows, width), strips, strides, draws, numbers.device)
    left = max(_count_left(queries, share), places.shape[1])
    return None if left == queries else Strips(numbers, places, left)


def merge_queries(metric: Tensor, strips: Strips) -> MergedQueries:
    """Merge the queries of each strip that are most similar to a dst of this strip.

    metric: (B, N, C) tokens whose similarity decides, for each image alone: the correlation of
    their channels, which one kernel of a GPU prepares.
    """
    numbers, left = strips.numbers, strips.left
    unit = F.layer_norm(metric, metric.shape[-1:], eps=LEAST_VARIANCE)
    unit = take_tokens(unit, numbers.flatten()[None]).unflatten(1, numbers.shape)  # (B, S, Q, C)
    places = strips.places.expand(len(metric), -1, -1)  # (B, S, n)
    at_dst = places[..., None].expand(-1, -1, -1, metric.shape[2])
    similarity = unit @ unit.gather(2, at_dst).mT  # (B, S, Q, n)
    best, which = similarity.max(dim=-1)  # (B, S, Q)
    order = best.scatter_(2, places, float("-inf")).argsort(dim=-1, stable=True)
    kept = order.narrow(2, 0, left)  # (B, S, M), the least similar
    goes_to = places.gather(2, which).scatter_(2, kept, kept)  # (B, S, Q)
    of_kept = number_between(0, left, kept.device).expand_as(kept)
    slots = torch.empty_like(which).scatter_(2, kept, of_kept).gather(2, goes_to)
    return MergedQueries(kept, slots)


@lru_cache(maxsize=32)
def count_rows(axes: Axes, share: float) -> int:
    """The rows of a strip: as many as divide those of a tile, frames counted one after the other,
    and leave at most ``MOST_LEFT`` queries; at least one.
    """
    frames, height, width = (axis.tile for axis in axes)
    fitting = (
        rows
        for rows in range(1, frames * height + 1)
        if frames * height % rows == 0 and _count_left(rows * width, share) <= MOST_LEFT
    )
    return max(fitting, default=1)


def _count_left(queries: int, share: float) -> int:
    return queries - round(share * queries)


def _choose_places(
    strip: TokenGrid,
    strips: int,
    strides: tuple[int, int],
    draws: Draws | None,
    device: torch.device,
) -> Tensor:
    """The dst of each strip, one for each of its cells, as places in the strip. (S, n) int64."""
    stride_y, stride_x = min(strides[0], strip.height), min(strides[1], strip.width)
    cells = list_strided_cells(strip, stride_y, stride_x, device)
    if draws is None:
        return cells.tokens[:1].expand(strips, -1)
    drawn = draws.draw_below(cells.sizes.expand(strips, -1))
    return cells.tokens.gather(0, drawn)
