"""Where tokens lie in a picture: frame, row and column, also packed into one number."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from token_merge.tome_core import TokenGrid
from torch import Tensor

MOST = 1024
"""Of a side of a grid: 10 bits of a packed place."""

NOWHERE = -MOST
"""A frame, row and column so far away that no token is near it."""


def list_places(grid: TokenGrid) -> Tensor:
    """(N, 3) int64."""
    if max(grid.sides) > MOST:
        raise ValueError(f"grid is {grid}, expected sides of at most {MOST}")
    return torch.cartesian_prod(*map(torch.arange, grid.sides))


def pack_places(places: Tensor) -> Tensor:
    """(n, 3) -> (n,) int32."""
    frame, row, column = places.unbind(dim=1)
    return ((frame * MOST + row) * MOST + column).int()


def lies_within(place: Tensor, first: Sequence[Tensor], sides: Sequence[int]) -> Tensor:
    """Whether packed places lie in the box of these sides that begins at ``first``.

    place and the three of ``first``: numbers of any shapes that broadcast.
    """
    frame = place // MOST**2 - first[0]
    row = place // MOST % MOST - first[1]
    column = place % MOST - first[2]
    below = (frame < sides[0]) & (row < sides[1]) & (column < sides[2])
    return below & (frame >= 0) & (row >= 0) & (column >= 0)
