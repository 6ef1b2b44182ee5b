"""Merging queries of local windows: similar ones of a tile read the keys beyond their box together.

A query reads the keys near it for itself, since where it looks there changes from token to token.
What lies farther away looks alike from similar queries of a tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from .cells import list_strided_cells
from .draws import Draws
from .grid import TokenGrid
from .tiled_axis import Axes
from .tokens import number_between, take_tokens

LEAST_VARIANCE = 1e-12
"""Tokens whose channels vary less are like no other token."""


@dataclass(frozen=True, eq=False)
class MergedQueries:
    """Of the Q queries of each of T tiles, M remain.

    kept: (B, T, M) int64, their places in the tile. slots: (B, T, Q) int64, which of the M each
    query of the tile reads far keys with.
    """

    kept: Tensor
    slots: Tensor

    @property
    def share(self) -> float:
        """Of the queries, how many remain."""
        return self.kept.shape[2] / self.slots.shape[2]

    @cached_property
    def _kept_rows(self) -> Tensor:
        """(B, T·M) int64, of all queries of all tiles."""
        return _count_on(self.kept, self.slots.shape[2])

    @cached_property
    def _slot_rows(self) -> Tensor:
        """(B, T·Q) int64, of all queries that remain."""
        return _count_on(self.slots, self.kept.shape[2])

    def merge(self, q: Tensor) -> Tensor:
        """The queries that remain. (B, H, T·Q, D) -> (B, H, T·M, D)."""
        return take_tokens(q, self._kept_rows)

    def unmerge(self, y: Tensor) -> Tensor:
        """Give each query what its slot has. (B, H, T·M, D) -> (B, H, T·Q, D)."""
        return take_tokens(y, self._slot_rows)


def _count_on(places: Tensor, of_tile: int) -> Tensor:
    """Places within tiles as places within all of them. (B, T, n) -> (B, T·n)."""
    first = number_between(0, places.shape[1], places.device) * of_tile
    return (places + first[:, None]).flatten(1)


def merge_queries(
    metric: Tensor,
    axes: Axes,
    numbers: Tensor,
    strides: tuple[int, int],
    share: float,
    draws: Draws | None,
) -> MergedQueries | None:
    """Merge the queries of each tile that are most similar to a dst of this tile.

    ToMe for SD (arXiv 2303.17604) sec. 4, within tiles: each cell has one dst, all other queries
    are src. None where the dst leave no query to merge.

    Args:
        metric: (B, N, C) tokens whose similarity decides, for each image alone: the correlation of
            their channels, which one kernel of a GPU prepares.
        numbers: (T, Q) int64, the tokens of each tile.
        strides: height and width of a cell.
        share: of the queries that is merged away.
        draws: for a random dst of each cell; None takes the first.
    """
    places = _choose_places(axes, numbers.shape[0], strides, draws, metric.device)  # (T, n)
    tiles, queries = numbers.shape
    merged = min(round(share * queries), queries - places.shape[1])  # R
    if merged < 1:
        return None
    unit = F.layer_norm(metric, metric.shape[-1:], eps=LEAST_VARIANCE)
    unit = unit.index_select(1, numbers.flatten()).unflatten(1, (tiles, queries))  # (B, T, Q, C)
    unit_dst = unit.take_along_dim(places[None, :, :, None], dim=2)  # (B, T, n, C)
    places = places.expand(len(metric), -1, -1)  # (B, T, n)
    best, which = (unit @ unit_dst.mT).max(dim=-1)  # (B, T, Q)
    order = best.scatter_(2, places, float("-inf")).argsort(dim=-1, descending=True, stable=True)
    src, kept = order.split([merged, queries - merged], dim=2)  # (B, T, R), (B, T, M)
    dst = places.gather(2, which.gather(2, src))  # (B, T, R)
    slots = torch.empty_like(which)
    slots.scatter_(2, kept, number_between(0, kept.shape[2], kept.device).expand_as(kept))
    slots.scatter_(2, src, slots.gather(2, dst))
    return MergedQueries(kept, slots)


def _choose_places(
    axes: Axes, tiles: int, strides: tuple[int, int], draws: Draws | None, device: torch.device
) -> Tensor:
    """The dst of each tile, one for each of its cells, as places in the tile. (T, n) int64."""
    frames, height, width = (axis.tile for axis in axes)
    stride_y, stride_x = min(strides[0], height), min(strides[1], width)
    cells = list_strided_cells(TokenGrid(height, width, frames), stride_y, stride_x, device)
    if draws is None:
        return cells.tokens[:1].expand(tiles, -1)
    drawn = draws.draw_below(cells.sizes.expand(tiles, -1))
    return cells.tokens.gather(0, drawn)
