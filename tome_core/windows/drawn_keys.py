"""How the keys of each set follow each other, and which of them are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .near_and_far_keys import KeySet


@dataclass(frozen=True)
class KeyLayout:
    """How the keys of one set follow each other.

    Args:
        of: the set.
        rows: R, rows of tiles with keys of their own.
        keys: n, of each row.
        keys_read: how many of them a tile reads.
        step: where the next tile begins.
        weight: how many tokens each key stands for.
    """

    of: KeySet
    rows: int
    keys: int
    keys_read: int
    step: int
    weight: float

    def find_starts(self, tiles: tuple[int, int, int], device: torch.device) -> Tensor:
        """Where the keys of each tile begin in the list of all R·n. (T,) int64.

        tiles: along frames, rows and columns.
        """
        tile = torch.cartesian_prod(
            *(torch.arange(each, device=device) for each in tiles)
        )  # (T, 3)
        row = torch.zeros_like(tile[:, 0])
        for axis in self.of.row_axes:
            row = row * tiles[axis] + tile[:, axis]
        return row * self.keys + tile[:, self.of.sliding_axis] * self.step


@dataclass(frozen=True, eq=False)
class DrawnKeys:
    """The keys of one set.

    Args:
        layout: how they follow each other.
        numbers: (S, R, n) int32, tokens in each of S draws, for each row of tiles.
    """

    layout: KeyLayout
    numbers: Tensor

    def view_windows(self, x: Tensor, tiles: int) -> Tensor:
        """The keys of each tile, a view. (..., n, D) -> (..., tiles, keys_read, D)."""
        *rows, keys, channels = x.stride()
        sides = (*x.shape[:-2], tiles, self.layout.keys_read, x.shape[-1])
        return x.as_strided(sides, (*rows, self.layout.step * keys, keys, channels))


def split_sets(numbers: Tensor, layouts: Sequence[KeyLayout]) -> tuple[DrawnKeys, ...]:
    """The keys of all sets, (S, K), set by set, as views."""
    of_sets = numbers.split([each.rows * each.keys for each in layouts], dim=1)
    return tuple(
        DrawnKeys(layout, own.unflatten(1, (layout.rows, layout.keys)))
        for layout, own in zip(layouts, of_sets, strict=True)
    )
