"""Query groups: the queries are split into groups, and each group reads keys of its own.

Where all queries read the same few keys, all have the same error, and the next layers and steps
add it up. Groups that read other keys have other errors, and together they read all keys.
Attention costs as much as with one set of keys. Groups share nothing, so they are rows of a
larger batch. Groups on a regular grid would be the grid attention of MaxViT (arXiv 2204.01697,
sec. 3.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ..cells import Cells, list_cells
from ..constants import constant
from ..draws import Draws
from ..grid import Stream, TokenGrid
from ..tokens import (
    find_first_places,
    join_heads,
    number_between,
    split_heads,
    take_for_groups,
)
from .plan import ChoosingPlan


class QueryGroups(Protocol):
    """L queries in G groups of Q."""

    @property
    def groups(self) -> int:
        """G."""

    @property
    def group_size(self) -> int:
        """Q."""

    def split(self, x: Tensor) -> Tensor:
        """(B, ..., L, C) -> (B·G, ..., Q, C)."""

    def join(self, y: Tensor) -> Tensor:
        """Back to one sequence. (B·G, ..., Q, C) -> (B, ..., L, C)."""

    def split_mask(self, mask: Tensor) -> Tensor:
        """The queries of a mask whose keys are grouped already.

        (B·G, H, L or 1, K) -> (B·G, H, Q or 1, K).
        """


@dataclass(frozen=True)
class NumberedGroups:
    """Groups of any queries. Some are in two groups where G does not divide L.

    order: (G, Q) int64, the queries of each group. places: (1, L) int64, where query n is in the
    flattened ``order``.
    """

    order: Tensor
    places: Tensor

    @property
    def groups(self) -> int:
        return len(self.order)

    @property
    def group_size(self) -> int:
        return self.order.shape[1]

    def split(self, x: Tensor) -> Tensor:
        return take_for_groups(x, self.order)

    def join(self, y: Tensor) -> Tensor:
        if y.ndim == 4:  # groups of heads that are apart could be put together by a copy alone
            return split_heads(self.join(join_heads(y)), y.shape[1])
        return take_for_groups(y.reshape(-1, self.order.numel(), y.shape[2]), self.places)

    def split_mask(self, mask: Tensor) -> Tensor:
        return _split_mask(mask, self.order)


@dataclass(frozen=True)
class BlockGroups:
    """Groups of queries that follow each other: views, so that nothing is copied."""

    groups: int
    group_size: int

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-2, (self.groups, -1)).movedim(-3, 1).flatten(0, 1)

    def join(self, y: Tensor) -> Tensor:
        return y.unflatten(0, (-1, self.groups)).movedim(1, -3).flatten(-3, -2)

    def split_mask(self, mask: Tensor) -> Tensor:
        order = number_between(0, self.groups * self.group_size, mask.device)
        return _split_mask(mask, order.view(self.groups, -1))


def _split_mask(mask: Tensor, order: Tensor) -> Tensor:
    """order: (G, Q) int64, the queries of each group."""
    if mask.shape[-2] == 1:
        return mask
    grouped = mask.unflatten(0, (-1, len(order)))  # (B, G, H, L, K)
    queries = order[:, None, :, None]  # (G, 1, Q, 1)
    return grouped.take_along_dim(queries[None], dim=-2).flatten(0, 1)


@constant
def draw_groups(
    queries: int, groups: int, draws: Draws, before: int = 0, after: int = 0
) -> QueryGroups:
    """Groups of random queries, so that neighbours are seldom in the same one.

    It is kept: which queries are together may stay the same, as long as each group's keys are
    drawn again in each step. Which of the picture's queries are together does not depend on how
    many others there are: prompts of two lengths have the same error in the picture, and guidance,
    which takes one prediction off the other, does not multiply it.

    before, after: how many of the queries stand before and after the picture's.
    """
    order = draws.draw_order(queries - before - after)
    return _cut(order, groups, before, after)


@constant
def cut_groups(
    slots: int, groups: int, device: torch.device, before: int = 0, after: int = 0
) -> QueryGroups:
    """Groups of merged queries. Their slots are in random order already (see ``SlotPlan``),
    so each block of slots is a group.

    The other arguments are as for ``draw_groups``.
    """
    if not before + after and slots % groups == 0:
        return BlockGroups(groups, slots // groups)
    return _cut(number_between(0, slots - before - after, device), groups, before, after)


def _cut(picture: Tensor, groups: int, before: int, after: int) -> NumberedGroups:
    """Blocks of the picture's queries in the order of their numbers, and of all other queries."""
    device, queries = picture.device, before + len(picture) + after
    others = torch.cat(
        [number_between(0, before, device), number_between(queries - after, queries, device)]
    )
    order = torch.cat([_deal(picture + before, groups), _deal(others, groups)], dim=1)
    return NumberedGroups(order, find_first_places(order.flatten(), queries)[None])


def _deal(numbers: Tensor, groups: int) -> Tensor:
    """As many to each group; where they do not suffice, the first ones again. (groups, n)."""
    each = -(-len(numbers) // groups)
    return numbers.repeat(groups)[: groups * each].view(groups, each)


def choose_for_groups(stream: Stream, smaller: TokenGrid, draws: Draws, most: int) -> ChoosingPlan:
    """One token of each cell, drawn for each query group.

    There are at most ``most`` groups, and together they read no more keys than there are tokens.
    """
    groups = min(most, stream.length // (smaller.tokens + stream.others))
    cells = list_cells(stream.grid, smaller, groups, draws.device)
    return _choose(stream, smaller, cells, cells.wrap_index(draws))


@constant
def _choose(stream: Stream, smaller: TokenGrid, cells: Cells, draws: Draws) -> ChoosingPlan:
    chosen = stream.extend_numbers(cells.draw(draws), stream.length)
    return ChoosingPlan(stream, smaller, chosen)
