"""The cells of tokens from which the keys of windows are drawn, one key of each.

Along one axis the keys of neighbouring tiles overlap. They lie there one after the other, so that
those of each tile are a view of the same memory that begins a bit later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd

import torch
from torch import Tensor

from ..constants import constant
from .geometry import Axes
from .near_and_far_keys import KeySet

GOLDEN = 0.618
"""From index to index a draw moves on by this share of the tokens that it is drawn from, so that
few draws are spread over all of them."""


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
class KeyCells:
    """The cells of one or several sets. In ``tokens`` those of each cell follow each other.

    Args:
        layouts: of the sets. Their keys come one after the other, N of all rows together.
        places: (M,) int64, how many places each draw chooses from; where cells are not whole, a
            token has several places.
        strides: (M,) int64, how far a draw moves on from index to index; all places come before one
            comes again.
        draw: (N,) int64, the draw that each key comes from.
        first: (N,) int64, where the places of its cell begin in ``tokens``.
        tokens: int32, what each place adds to the number of a token.
        along: (N,) int32, what the sliding axis adds.
    """

    layouts: tuple[KeyLayout, ...]
    places: Tensor
    strides: Tensor
    draw: Tensor
    first: Tensor
    tokens: Tensor
    along: Tensor


@constant
def list_key_cells(
    axes: Axes, before: int, sets: tuple[KeySet, ...], device: torch.device
) -> KeyCells:
    """The cells of all sets.

    Rows of tiles that differ in time alone share their draws: errors that change from frame to
    frame would flicker.

    before: tokens of the sequence before those of the picture.
    """
    cells = [_list_of_set(axes, before, of, device) for of in sets]
    return KeyCells(
        layouts=sum((each.layouts for each in cells), ()),
        places=torch.cat([each.places for each in cells]),
        strides=torch.cat([each.strides for each in cells]),
        draw=_join([each.draw for each in cells], [len(each.places) for each in cells]),
        first=_join([each.first for each in cells], [len(each.tokens) for each in cells]),
        tokens=torch.cat([each.tokens for each in cells]).int(),
        along=torch.cat([each.along for each in cells]).int(),
    )


def _join(numbers: Sequence[Tensor], lengths: Iterable[int]) -> Tensor:
    """Numbers within each of several lists as numbers within all of them."""
    joined, start = [], 0
    for each, length in zip(numbers, lengths, strict=True):
        joined.append(each + start)
        start += length
    return torch.cat(joined)


def _list_of_set(axes: Axes, before: int, of: KeySet, device: torch.device) -> KeyCells:
    """The cells of one set."""
    sliding = axes[of.sliding_axis]
    reach = of.reaches[of.sliding_axis]
    strides = axes[1].length * axes[2].length, axes[2].length, 1

    def number(axis: int, tiles: int, keys: int) -> Tensor:
        """What tokens along one axis add to the number of a token. (tiles, keys)"""
        first = axes[axis].find_first(of.reaches[axis], torch.arange(tiles, device=device))
        place = first[:, None] + torch.arange(keys, device=device)
        return place % axes[axis].length * strides[axis]

    tiles = tuple(axes[axis].tiles if axis in of.row_axes else 1 for axis in range(3))
    across = torch.full((1, 1), before, dtype=torch.int64, device=device)
    for axis in range(3):
        if axis != of.sliding_axis:
            own = number(axis, tiles[axis], axes[axis].count_keys(of.reaches[axis]))
            across = across[:, None, :, None] + own[None, :, None]
            across = across.flatten(2).flatten(0, 1)  # (tiles, keys), of all axes until now
    rows, length = across.shape
    kept = max(1, round(length / of.one_of))
    places = length // gcd(length, kept)
    tokens = across[:, torch.arange(kept * places, device=device) * length // (kept * places)]

    moves = sliding.tile if reach != "all" else 0
    along = number(of.sliding_axis, 1, sliding.count_keys(reach) + moves * (sliding.tiles - 1))[0]
    along = along.repeat_interleave(kept)  # (n,)
    first = torch.arange(rows * kept, device=device).view(rows, 1, kept) * places
    first = first.expand(-1, len(along) // kept, -1)  # (R, n / kept, kept)
    draws = rows // tiles[0] * len(along)
    draw = torch.arange(draws, device=device).expand(tiles[0], -1)
    keys_read = sliding.count_keys(reach) * kept
    return KeyCells(
        layouts=(KeyLayout(of, rows, len(along), keys_read, moves * kept, length / kept),),
        places=torch.full((draws,), places, device=device),
        strides=torch.full((draws,), _find_stride(places), device=device),
        draw=draw.flatten(),
        first=first.flatten(),
        tokens=tokens.flatten(),
        along=along.repeat(rows),
    )


def _find_stride(places: int) -> int:
    wanted = GOLDEN * places
    coprime = (each for each in range(1, places + 1) if gcd(each, places) == 1)
    return min(coprime, key=lambda each: abs(each - wanted))
