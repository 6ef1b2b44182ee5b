"""Which blocks of keys the queries of each tile read."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from token_merge.tome_core import WindowPlan
from torch import Tensor

BLOCK = 64
"""Queries and keys of a block. A tile of 8 x 8 tokens is one block."""

BY_NONE, BY_ALL, IN_BOXES = -3, -2, -1
"""Who reads a key: nobody, every query, the tiles in whose box it lies. From 0 on: the tiles that
read the draw of this number, where it lies outside their box."""


@dataclass(frozen=True)
class BlockLists:
    """Which blocks of keys the queries of each tile read, for each draw.

    numbers: (S, T + 1, K) int32, those that it reads come first. counts: (S, T + 1) int32, how many
    these are. Behind the tiles stands what is not of the picture.
    """

    numbers: Tensor
    counts: Tensor

    def to(self, device: torch.device) -> BlockLists:
        return BlockLists(self.numbers.to(device), self.counts.to(device))

    def take(self, draws: Tensor, tiles: Tensor) -> tuple[Tensor, Tensor]:
        """Counts and numbers for blocks of queries, (1, 1, R) and (1, 1, R, K)."""
        return self.counts[draws, tiles][None, None], self.numbers[draws, tiles][None, None]


def list_blocks(
    plan: WindowPlan, readers: Tensor, shared: Tensor, sizes: Tensor
) -> tuple[BlockLists, BlockLists]:
    """The blocks that each tile reads as a whole, and those of which it reads some keys.

    Args:
        readers: (n,), of the keys that are of no draw.
        shared: (n,) int64, their numbers within the picture; any, where they are not of it.
        sizes: (m,), how many keys each block of a draw has.
    """
    of_all = _count_shared(plan, readers, shared)
    drawn = _count_drawn(plan, sizes)
    read = torch.cat([of_all.expand(len(drawn), -1, -1), drawn], dim=2)  # (S, T + 1, k + S·m)
    return _list(read == BLOCK), _list((read > 0) & (read < BLOCK))


def _count_shared(plan: WindowPlan, readers: Tensor, shared: Tensor) -> Tensor:
    """How many keys of each block that is of no draw each tile reads. (T + 1, k)"""
    tiles = torch.arange(plan.window.tiles)
    inside = plan.window.find_inside(tiles, shared.expand(1, len(tiles), -1))[0]  # (T, n)
    inside = torch.cat([inside, torch.zeros_like(inside[:1])])
    read = (readers == BY_ALL) | ((readers == IN_BOXES) & inside)
    return read.unflatten(1, (-1, BLOCK)).sum(dim=2)


def _count_drawn(plan: WindowPlan, sizes: Tensor) -> Tensor:
    """How many keys of each block of a draw each tile reads, for each draw. (S, T + 1, S·m)

    Any token of a cell may be kept. So where a cell reaches into a box, it is half of the block:
    neither all nor none.
    """
    draws, tiles = len(plan.kept), plan.window.tiles
    counts = sizes.repeat(tiles + 1, 1)  # (T + 1, m)
    counts[:-1].scatter_(1, plan.window.cells // BLOCK, BLOCK // 2)
    of_draws = counts.new_zeros(draws, tiles + 1, draws, len(sizes))
    each = torch.arange(draws)
    of_draws[each, :, each] = counts
    return of_draws.flatten(2)


def _list(read: Tensor) -> BlockLists:
    """(S, T + 1, K) bool"""
    numbers = read.int().argsort(dim=2, descending=True, stable=True)
    return BlockLists(numbers.int(), read.sum(dim=2).int())
