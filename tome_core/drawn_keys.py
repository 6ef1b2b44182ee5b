"""Which keys of a set are read: some of them at random, in an order that needs no copy for a tile.

Along one axis the keys of neighbouring tiles overlap. They lie there one after the other, so that
those of each tile are a view of the same memory that begins a bit later.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import torch
from torch import Tensor

from .draws import Draws
from .key_sets import KeySet
from .tiled_axis import Axes
from .tokens import number_between

DRAWS = 8
"""The heads of a layer read so many draws in turn."""

GOLDEN = 0.618
"""From turn to turn a draw moves on by this share of the tokens that it is drawn from, so that few
draws are spread over all of them."""


@dataclass(frozen=True, eq=False)
class DrawnKeys:
    """The keys of one set.

    Args:
        of: the set.
        numbers: (S, R, n) int64, tokens in each of S draws, for each row of tiles.
        window: how many of them a tile reads.
        step: where the next tile begins.
        weight: how many tokens each key stands for.
    """

    of: KeySet
    numbers: Tensor
    window: int
    step: int
    weight: float

    @property
    def device(self) -> torch.device:
        return self.numbers.device

    def view_windows(self, x: Tensor, tiles: int) -> Tensor:
        """The keys of each tile, a view. (..., n, D) -> (..., tiles, window, D)."""
        *rows, keys, channels = x.stride()
        sides = (*x.shape[:-2], tiles, self.window, x.shape[-1])
        return x.as_strided(sides, (*rows, self.step * keys, keys, channels))


@dataclass(frozen=True, eq=False)
class _Cells:
    """What is drawn from, at each place of the windowed axis: a cell's tokens follow each other.

    Args:
        places: of a cell, of which one is drawn; where cells are not whole, a token has several.
        tokens: (R·K·places,) int64, what each place adds to the number of a token, for each row of
            tiles and each of K cells.
        first: (T, R / T, n) int64, where the places of each key's cell begin in ``tokens``.
        along: (n,) int64, what the windowed axis adds.
        window, step, weight: see ``DrawnKeys``.
    """

    places: int
    tokens: Tensor
    first: Tensor
    along: Tensor
    window: int
    step: int
    weight: float

    @property
    def stride(self) -> int:
        """How far a draw moves on from turn to turn; all places come before one comes again."""
        wanted = GOLDEN * self.places
        coprime = (each for each in range(1, self.places + 1) if gcd(each, self.places) == 1)
        return min(coprime, key=lambda each: abs(each - wanted))


def draw_keys(axes: Axes, before: int, of: KeySet, draws: Draws, count: int) -> DrawnKeys:
    """Keys of a set: stratified sampling, as ``Cells.draw`` does it.

    All rows that differ in time alone read the same places: errors that change from frame to frame
    would flicker.

    Args:
        before: tokens of the sequence before those of the picture.
        count: S, how often keys are drawn; once where all keys of the set are kept.
    """
    cells = _list_cells(axes, before, of, draws.device)
    place = cells.first[None]  # (1, T, R / T, n)
    if cells.places > 1:
        shape = count, 1, *cells.first.shape[1:]
        most = number_between(cells.places, cells.places + 1, draws.device)
        drawn = draws.draw_below(most.expand(shape))
        place = place + (drawn + draws.turn * cells.stride) % cells.places
    numbers = (cells.tokens[place] + cells.along).flatten(1, 2)
    return DrawnKeys(of, numbers, cells.window, cells.step, cells.weight)


@lru_cache(maxsize=64)
@torch.inference_mode(False)
def _list_cells(axes: Axes, before: int, of: KeySet, device: torch.device) -> _Cells:
    windowed = axes[of.windowed]
    reach = of.reaches[of.windowed]
    strides = axes[1].length * axes[2].length, axes[2].length, 1

    def number(axis: int, tiles: int, keys: int) -> Tensor:
        """What tokens along one axis add to the number of a token. (tiles, keys)"""
        first = axes[axis].find_first(of.reaches[axis], torch.arange(tiles, device=device))
        place = first[:, None] + torch.arange(keys, device=device)
        return place % axes[axis].length * strides[axis]

    tiles = tuple(axes[axis].tiles if axis in of.rows else 1 for axis in range(3))
    across = torch.full((1, 1), before, dtype=torch.int64, device=device)
    for axis in range(3):
        if axis != of.windowed:
            own = number(axis, tiles[axis], axes[axis].count_keys(of.reaches[axis]))
            across = across[:, None, :, None] + own[None, :, None]
            across = across.flatten(2).flatten(0, 1)  # (tiles, keys), of all axes until now
    rows, length = across.shape
    kept = max(1, round(length / of.one_of))
    places = length // gcd(length, kept)
    tokens = across[:, torch.arange(kept * places, device=device) * length // (kept * places)]

    moves = windowed.tile if reach != "all" else 0
    along = number(of.windowed, 1, windowed.count_keys(reach) + moves * (windowed.tiles - 1))[0]
    first = torch.arange(rows * kept, device=device).view(tiles[0], -1, 1, kept) * places
    first = first.expand(-1, -1, len(along), -1).flatten(2)
    along = along.repeat_interleave(kept)
    window = windowed.count_keys(reach) * kept
    return _Cells(places, tokens.flatten(), first, along, window, moves * kept, length / kept)
