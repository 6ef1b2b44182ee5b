"""Which keys of each set are read: one of each cell, at random."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..draws import Draws
from .key_cells import KeyCells, KeyLayout

DRAWS = 8
"""The heads of a layer read so many draws, one head after the other."""


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


def draw_keys(cells: KeyCells, draws: Draws, count: int) -> tuple[Tensor, tuple[DrawnKeys, ...]]:
    """Keys of several sets: stratified sampling, as ``Cells.draw`` does it for whole pictures.

    All sets are drawn at once, since on a GPU each operation costs a launch. Returns all keys of
    the S draws, (S, N) int32, and the same keys set by set.

    count: S, how often keys are drawn.
    """
    drawn = draws.draw_below(cells.places.expand(count, -1))  # (S, M)
    drawn = torch.add(drawn, cells.strides, alpha=draws.index) % cells.places
    place = cells.first + drawn.index_select(1, cells.draw)  # (S, N)
    numbers = cells.tokens[place] + cells.along
    of_sets = numbers.split([each.rows * each.keys for each in cells.layouts], dim=1)
    return numbers, tuple(
        DrawnKeys(layout, own.unflatten(1, (layout.rows, layout.keys)))
        for layout, own in zip(cells.layouts, of_sets, strict=True)
    )
