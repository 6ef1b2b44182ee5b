"""The cells of tokens from which the keys of windows are drawn, one key of each.

Along one axis the keys of neighbouring tiles overlap. They lie there one after the other, so that
those of each tile are a view of the same memory that begins a bit later.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from math import gcd, prod

import torch
from torch import Tensor

from ..constants import constant
from ..draws import Draws
from .drawn_keys import KeyLayout
from .geometry import Axes
from .near_and_far_keys import KeySet

GOLDEN = 0.618
"""From index to index a draw moves on by this share of the tokens that it is drawn from, so that
few draws are spread over all of them."""


@dataclass(frozen=True, eq=False)
class KeyCells:
    """The cells of one or several sets. In ``tokens`` those of each cell follow each other.

    A cell need not hold a whole number of tokens. So each token has several places, and a cell has
    a whole number of places.
    Where ``drawn[d]`` is the place that draw d chose, below ``choices[d]``, key n is the token

        tokens[(first[n] + drawn[d]) // places[d]] + along[n]    with d = draw_of_key[n]

    For example, one token of each column is read on a grid of 2 rows and 3 columns: ``tokens`` is
    [0, 3], what a row adds, ``along`` is [0, 1, 2], what a column adds, ``first`` is [0, 0, 0],
    ``draw_of_key`` is [0, 1, 2], and ``places`` are 1. Where [1, 0, 1] is drawn, the keys are
    3 + 0, 0 + 1 and 3 + 2.

    Args:
        layouts: of the sets. Their keys come one after the other, K of all rows together.
        choices: (M,) int64, from how many places each draw chooses.
        strides: (M,) int64, how far a draw moves on from index to index; all places come before one
            comes again.
        places: (M,) int64, how many of them each token has.
        draw_of_key: (K,) int64, the draw that each key comes from.
        first: (K,) int64, where its cell begins among the places of all tokens.
        tokens: int32, what each token across the sliding axis adds to the number of a token.
        along: (K,) int32, what the sliding axis adds.
    """

    layouts: tuple[KeyLayout, ...]
    choices: Tensor
    strides: Tensor
    places: Tensor
    draw_of_key: Tensor
    first: Tensor
    tokens: Tensor
    along: Tensor

    def draw(self, draws: Draws, times: int) -> Tensor:
        """The keys of all sets: stratified sampling, as ``Cells.draw`` does it for whole pictures.

        All sets are drawn at once, since on a GPU each operation costs a launch.

        times: S, how often keys are drawn. Returns (S, K) int32.
        """
        drawn = draws.draw_below(self.choices.expand(times, -1))  # (S, M)
        drawn = torch.add(drawn, self.strides, alpha=draws.index) % self.choices
        place = self.first + drawn.index_select(1, self.draw_of_key)  # (S, K)
        return self.tokens[place // self.places.index_select(0, self.draw_of_key)] + self.along


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
    draws = accumulate((len(each.choices) for each in cells), initial=0)
    tokens = accumulate((len(each.tokens) for each in cells), initial=0)
    return KeyCells(
        layouts=sum((each.layouts for each in cells), ()),
        choices=torch.cat([each.choices for each in cells]),
        strides=torch.cat([each.strides for each in cells]),
        places=torch.cat([each.places for each in cells]),
        draw_of_key=torch.cat(
            [each.draw_of_key + start for each, start in zip(cells, draws, strict=False)]
        ),
        first=torch.cat(
            [
                each.first + start * each.places[0]
                for each, start in zip(cells, tokens, strict=False)
            ]
        ),
        tokens=torch.cat([each.tokens for each in cells]).int(),
        along=torch.cat([each.along for each in cells]).int(),
    )


def _list_of_set(axes: Axes, before: int, of: KeySet, device: torch.device) -> KeyCells:
    """The cells of one set: across the sliding axis, and the same at each place along it."""
    across = _number_across(axes, before, of, device)
    rows, length = across.shape
    kept = max(1, round(length / of.one_of))  # cells of a row, and keys at each place
    common = gcd(length, kept)
    places, choices = kept // common, length // common

    sliding, reach = axes[of.sliding_axis], of.reaches[of.sliding_axis]
    moves = sliding.tile if reach != "all" else 0
    own = sliding.count_keys(reach)
    all_tiles = own + moves * (sliding.tiles - 1)
    along = _number_along(axes, of, of.sliding_axis, 1, all_tiles, device)[0]
    along = along.repeat_interleave(kept)  # (n,)

    first = torch.arange(rows * kept, device=device).view(rows, 1, kept) * choices
    first = first.expand(-1, all_tiles, -1)  # (R, n / kept, kept)
    # Rows of tiles in other frames share the draws of those in the first.
    frames = axes[0].tiles if 0 in of.row_axes else 1
    draws = rows // frames * len(along)
    return KeyCells(
        layouts=(KeyLayout(of, rows, len(along), own * kept, moves * kept, length / kept),),
        choices=torch.full((draws,), choices, device=device),
        strides=torch.full((draws,), _find_stride(choices), device=device),
        places=torch.full((draws,), places, device=device),
        draw_of_key=torch.arange(draws, device=device).repeat(frames),
        first=first.flatten(),
        tokens=across.flatten(),
        along=along.repeat(rows),
    )


def _number_across(axes: Axes, before: int, of: KeySet, device: torch.device) -> Tensor:
    """What the axes other than the sliding one add to the number of a token, for each row of tiles.

    Returns (R, tokens across the sliding axis) int64, ``before`` included.
    """
    across = torch.full((1, 1), before, dtype=torch.int64, device=device)
    for axis in range(3):
        if axis != of.sliding_axis:
            tiles = axes[axis].tiles if axis in of.row_axes else 1
            keys = axes[axis].count_keys(of.reaches[axis])
            own = _number_along(axes, of, axis, tiles, keys, device)
            across = across[:, None, :, None] + own[None, :, None]
            across = across.flatten(2).flatten(0, 1)  # (tiles, keys), of all axes until now
    return across


def _number_along(
    axes: Axes, of: KeySet, axis: int, tiles: int, keys: int, device: torch.device
) -> Tensor:
    """What tokens along one axis add to the number of a token. (tiles, keys) int64.

    keys: so many, from the first that each tile reads.
    """
    stride = prod(each.length for each in axes[axis + 1 :])
    first = axes[axis].find_first(of.reaches[axis], torch.arange(tiles, device=device))
    place = first[:, None] + torch.arange(keys, device=device)
    return place % axes[axis].length * stride


def _find_stride(choices: int) -> int:
    wanted = GOLDEN * choices
    coprime = (each for each in range(1, choices + 1) if gcd(each, choices) == 1)
    return min(coprime, key=lambda each: abs(each - wanted))
