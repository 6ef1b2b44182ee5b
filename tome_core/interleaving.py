"""Interleaved downsampling: the queries form groups, and each group reads other keys.

Downsampling gives all queries the same few keys, and so the same error, which the next layers and
steps add up. Here the queries are dealt to groups at random, and every group attends to its own
random token of each cell. Attention costs what it costs on the one smaller grid, while neighbours
err differently and all keys are read by some. Groups share nothing, so they are rows of a larger
batch. Regular offsets instead of random ones would be the grid attention of MaxViT (arXiv
2204.01697, sec. 3.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .cells import Cells
from .grid import TokenGrid

MOST_GROUPS = 4
"""More share hardly more of the error out (factor 4, 8 pictures of the trained model: mean squared
error 1.8e-4 with 4 groups as with 16), and each has keys and values to project and to copy."""


def to_groups(x: Tensor, rows: Tensor) -> Tensor:
    """Tokens ``rows[g]`` of image b as row b·G + g. (B, ..., L, C), (G, n) -> (B·G, ..., n, C)."""
    picked = x.index_select(-2, rows.flatten().to(x.device, non_blocking=True))
    return picked.unflatten(-2, rows.shape).movedim(-3, 1).flatten(0, 1)


@dataclass(frozen=True)
class Deal:
    """Queries dealt to G groups of Q; a few are in two where G does not divide them.

    order: (G, Q) int64, the queries of each group. places: (L,) int64, where query n is in the
    flattened ``order``.
    """

    order: Tensor
    places: Tensor

    @classmethod
    def draw(cls, queries: int, groups: int, generator: torch.Generator) -> Deal:
        """At random, so that neighbours seldom meet. On the CPU, as ``Cells.drawn``."""
        order = torch.randperm(queries, generator=generator)
        places = torch.empty_like(order).scatter_(0, order, torch.arange(queries))
        in_all = -(-queries // groups) * groups
        filled = order[torch.arange(in_all) % queries]
        return cls(filled.view(groups, -1), places)

    @property
    def groups(self) -> int:
        return len(self.order)

    @property
    def queries(self) -> int:
        """L, the queries that are dealt."""
        return len(self.places)

    def split(self, x: Tensor) -> Tensor:
        """(B, ..., L, C) -> (B·G, ..., Q, C)."""
        return to_groups(x, self.order)

    def join(self, y: Tensor) -> Tensor:
        """Back into one sequence. (B·G, ..., Q, C) -> (B, ..., L, C)."""
        groups = y.unflatten(0, (-1, self.groups)).movedim(1, -3)  # (B, ..., G, Q, C)
        return groups.flatten(-3, -2).index_select(-2, self.places.to(y.device, non_blocking=True))

    def split_rows_of_mask(self, mask: Tensor) -> Tensor:
        """A mask whose batch is grouped already. (B·G, H, L or 1, K) -> (B·G, H, Q or 1, K)."""
        if mask.shape[-2] == 1:
            return mask
        rows = self.order.to(mask.device)[:, None, :, None]  # (G, 1, Q, 1)
        grouped = mask.unflatten(0, (-1, self.groups))  # (B, G, H, L, K)
        return grouped.take_along_dim(rows[None], dim=-2).flatten(0, 1)


@dataclass(frozen=True)
class InterleavedPlan:
    """The keys and values of each group: its own token of every cell.

    chosen: (G, M) int64. No token is in two groups as long as its cell has others.
    """

    grid: TokenGrid
    smaller: TokenGrid
    chosen: Tensor

    @classmethod
    def draw(
        cls, grid: TokenGrid, smaller: TokenGrid, groups: int, generator: torch.Generator
    ) -> InterleavedPlan:
        return cls(grid, smaller, Cells(grid, smaller).drawn(groups, generator))

    @property
    def groups(self) -> int:
        return len(self.chosen)

    def merge(self, x: Tensor) -> Tensor:
        """Keys or values of all groups. (B, N, C) -> (B·G, M, C)."""
        return to_groups(x, self.chosen)
