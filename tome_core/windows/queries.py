"""Merging queries of local windows: similar ones read the keys out of their box together.

A query reads the keys near it for itself, since which of them matter changes from token to token.
To keys farther away, similar queries of a tile attend nearly alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from ..cells import Cells, list_strided_cells
from ..constants import constant
from ..draws import Draws
from ..faster_forms import find_form
from ..grid import TokenGrid
from ..tokens import number_between, number_first, take_tokens
from .geometry import Axes, number_queries

MOST_KEPT = 64
"""So many queries of a strip are kept at most. Our own kernel computes as many at once."""

LEAST_VARIANCE = 1e-12
"""Tokens whose channels vary less are like no other token."""


@dataclass(frozen=True, eq=False)
class MergedQueries:
    """Of the Q queries of each of S strips, M are kept. Strips are whole rows of a tile.

    kept: (B, S, M) int64, their places in the strip. They need not follow each other in memory.
    slots: (B, S, Q) int64, which of the M each query of the strip reads far keys with.
    """

    kept: Tensor
    slots: Tensor

    @property
    def share(self) -> float:
        """Of the queries, how many are kept."""
        return self.kept.shape[2] / self.slots.shape[2]

    @cached_property
    def _kept_rows(self) -> Tensor:
        """(B, S·M) int64, of all queries of all strips."""
        return _count_on(self.kept, self.slots.shape[2])

    @cached_property
    def _slot_rows(self) -> Tensor:
        """(B, S·Q) int64, of all queries that are kept."""
        return _count_on(self.slots, self.kept.shape[2])

    def merge(self, q: Tensor) -> Tensor:
        """The queries that are kept. (B, H, S·Q, D) -> (B, H, S·M, D)."""
        return take_tokens(q, self._kept_rows)

    def unmerge(self, y: Tensor) -> Tensor:
        """Give each query what its slot has. (B, H, S·M, D) -> (B, H, S·Q, D)."""
        return take_tokens(y, self._slot_rows)


def _count_on(places: Tensor, strip_size: int) -> Tensor:
    """Places within strips as places within all of them. (B, S, n) -> (B, S·n)."""
    return (places + number_first(places.shape[1], strip_size, places.device)).flatten(1)


@dataclass(frozen=True, eq=False)
class Strips:
    """S strips of Q queries, n of which are dst, before it is known which others are merged.

    numbers: (S, Q) int64, their tokens. dst: (S, n) int64, where the dst are in their strip.
    kept: M, how many queries of a strip are kept.
    """

    numbers: Tensor
    dst: Tensor
    kept: int


def cut_strips(
    axes: Axes,
    strides: tuple[int, int],
    share: float,
    draws: Draws | None,
    device: torch.device,
) -> Strips | None:
    """Strips of each tile, with one dst in each cell: ToMe for SD (arXiv 2303.17604) sec. 4.

    None where the dst leave no query to merge.

    Args:
        axes: of the tiles.
        strides: height and width of a cell.
        share: of the queries that is merged away.
        draws: for a random dst of each cell; None takes the first.
    """
    numbers, cells, kept = fit_strips(axes, strides, share, device)
    count, queries = numbers.shape
    dst = cells.draw_independently(draws, count) if draws else cells.tokens[:1].expand(count, -1)
    return None if kept == queries else Strips(numbers, dst, kept)


@constant
def fit_strips(
    axes: Axes, strides: tuple[int, int], share: float, device: torch.device
) -> tuple[Tensor, Cells, int]:
    """The queries of all strips, (S, Q) int64, the cells of a strip, and how many queries of it are
    kept: those that the share leaves, or the dst where these are more.

    A strip has as many rows as divide those of a tile, frames counted one after the other, and
    keep at most ``MOST_KEPT`` queries; at least one.
    """
    frames, height, width = (axis.tile for axis in axes)
    stride_x = min(strides[1], width)

    def count_kept(rows: int) -> int:
        dst = rows // min(strides[0], rows) * (width // stride_x)
        return max(rows * width - round(share * rows * width), dst)

    most = frames * height
    fitting = (n for n in range(1, most + 1) if most % n == 0 and count_kept(n) <= MOST_KEPT)
    rows = max(fitting, default=1)
    cells = list_strided_cells(TokenGrid(rows, width), min(strides[0], rows), stride_x, device)
    return number_queries(axes, device)[0].view(-1, rows * width), cells, count_kept(rows)


def merge_queries(metric: Tensor, strips: Strips) -> MergedQueries:
    """Merge the queries of each strip that are most similar to a dst of this strip.

    metric: (B, N, C) tokens whose similarity decides, for each image alone: the correlation of
    their channels, which one kernel of a GPU prepares.
    """
    if faster := find_form("windows.merge_queries", metric.device, metric, strips):
        return faster(metric, strips)
    return merge_queries_by_sorting(metric, strips)


def merge_queries_by_sorting(metric: Tensor, strips: Strips) -> MergedQueries:
    """As ``merge_queries``, on any device."""
    tokens = strips.numbers.flatten()[None]  # (1, S·Q)
    standard = F.layer_norm(metric, metric.shape[-1:], eps=LEAST_VARIANCE)  # (B, N, C)
    standard = take_tokens(standard, tokens).unflatten(1, strips.numbers.shape)  # (B, S, Q, C)
    dst = strips.dst.expand(len(metric), -1, -1)  # (B, S, n)
    at_dst = dst[..., None].expand(-1, -1, -1, metric.shape[2])
    similarity = standard @ standard.gather(2, at_dst).mT  # (B, S, Q, n)
    best, which = similarity.max(dim=-1)  # (B, S, Q)
    order = best.scatter_(2, dst, float("-inf")).argsort(dim=-1, stable=True)
    kept = order.narrow(2, 0, strips.kept)  # (B, S, M), the least similar
    read_as = dst.gather(2, which).scatter_(2, kept, kept)  # (B, S, Q)
    of_kept = number_between(0, strips.kept, kept.device).expand_as(kept)
    slots = torch.empty_like(which).scatter_(2, kept, of_kept).gather(2, read_as)
    return MergedQueries(kept, slots)
