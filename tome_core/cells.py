"""Cells: which tokens of a grid each token of a smaller grid stands for."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

import torch
from torch import Tensor

from .constants import constant
from .draws import Draws, Identity
from .grid import TokenGrid
from .tokens import number_between

Sides = tuple[Tensor, Tensor, Tensor]
"""They are those along frames, height and width; each tensor broadcasts to (F', H', W')."""


@constant
def pick_nearest(
    grid: TokenGrid, smaller: TokenGrid, device: torch.device, *, centred: bool
) -> Tensor:
    """The token that nearest-neighbour downsampling keeps of each cell. (M,) int64.

    centred: pick at cell centres ("nearest-exact") instead of cell corners ("nearest").
    """

    def pick(side: int, smaller_side: int, axis: int) -> Tensor:
        cell = torch.arange(smaller_side, device=device)
        chosen = (2 * cell + centred) * side // (2 * smaller_side)
        return _along(chosen, axis)

    sides = zip(grid.sides, smaller.sides, strict=True)
    frame, y, x = (pick(side, count, axis) for axis, (side, count) in enumerate(sides))
    return _number_tokens(grid, frame, y, x)


@dataclass(frozen=True, eq=False)
class Cells:
    """The tokens of each cell, in the order in which they are drawn.

    Args:
        tokens: (n, M) int64, the tokens of each of M cells along its diagonals; after the last one
            the first follows again.
        sizes: (M,) int64, how many a cell has.
        largest: the largest of them.
        count: tokens of a cell that are drawn at once.
    """

    tokens: Tensor
    sizes: Tensor
    largest: int
    count: int

    def draw(self, draws: Draws) -> Tensor:
        """Random tokens of each cell: stratified, or jittered, sampling. (count, M) int64.

        Each draw is uniform over the cell. No token is drawn twice before the whole cell was
        drawn: the draws cycle through the cell, from a random token on. From index to index each
        draw moves on by one token. A query that reads one token of a cell in every step has read
        all of them after as many steps as there are tokens, and the errors of these steps mostly
        cancel: systematic sampling. (A cell with fewer tokens than ``largest`` may begin again too
        early.)
        """
        rows = self.largest + self.count - 1
        tokens = self.tokens.narrow(0, draws.index % self.largest, rows)
        return tokens.gather(0, _draw_first(self, draws.identity, draws.device))

    def wrap_index(self, draws: Draws) -> Draws:
        """The draws of the first cycle for which ``draw`` gives the same tokens."""
        return Draws(draws.identity, draws.device, draws.index % self.largest)

    def draw_independently(self, draws: Draws, times: int = 1) -> Tensor:
        """Random tokens of each cell, independent of each other. (times, M) int64.

        They depend on the identity of ``draws`` alone. For other tokens in each step, pass
        ``draws.per_step``.
        """
        return self.tokens.gather(0, draws.draw_below(self.sizes.expand(times, -1)))


@constant
def _draw_first(cells: Cells, identity: Identity, device: torch.device) -> Tensor:
    """Where the draws of each cell begin, the same for each index of a run. (count, M) int64."""
    first = Draws(identity, device).draw_below(cells.sizes)  # (M,)
    return first + number_between(0, cells.count, device)[:, None]


@constant
def list_cells(grid: TokenGrid, smaller: TokenGrid, count: int, device: torch.device) -> Cells:
    """One cell for each token of ``smaller``; together they are the whole grid.

    count: how many tokens of a cell are drawn at once.
    """
    sides = zip(grid.sides, smaller.sides, strict=True)
    largest = prod(ceil(side / smaller_side) for side, smaller_side in sides)
    return _list(grid, *_bound_cells(grid, smaller, device), largest, count)


@constant
def list_strided_cells(
    grid: TokenGrid, stride_y: int, stride_x: int, device: torch.device
) -> Cells:
    """The whole cells of stride_y x stride_x tokens; rows and columns beyond them are in none."""
    first = (
        _along(torch.arange(grid.frames, device=device), 0),
        _along(torch.arange(grid.height // stride_y, device=device) * stride_y, 1),
        _along(torch.arange(grid.width // stride_x, device=device) * stride_x, 2),
    )
    one = torch.ones(1, 1, 1, dtype=torch.int64, device=device)
    lengths = one, one * stride_y, one * stride_x
    return _list(grid, first, lengths, largest=stride_y * stride_x, count=1)


def _list(grid: TokenGrid, first: Sides, lengths: Sides, largest: int, count: int) -> Cells:
    """first: frame, row and column of each cell's first token. lengths: of each cell's sides.
    largest: most tokens of a cell.
    """
    frames, height, width = lengths
    sizes = (frames * height * width).expand(torch.broadcast_shapes(*(x.shape for x in first)))
    place = torch.arange(2 * largest + count - 2, device=sizes.device).view(-1, 1, 1, 1)
    within = place % sizes  # (n, F', H', W')
    frame = first[0] + within // (height * width)
    # Each token lies in another row and column than the one before, so that a few of them are
    # spread over the cell: from the first row to the last along a diagonal, then along the next.
    row, diagonal = within % height, within % (height * width) // height
    y, x = first[1] + row, first[2] + (row + diagonal) % width
    numbers = _number_tokens(grid, frame, y, x)
    return Cells(numbers.view(len(place), -1), sizes.flatten(), largest, count)


def _bound_cells(grid: TokenGrid, smaller: TokenGrid, device: torch.device) -> tuple[Sides, Sides]:
    """The first token of each cell, and the cell's length, along each axis.

    Side lengths differ by at most one token where a side of ``smaller`` does not divide that of
    ``grid``; no token is left out.
    """
    bounds = [
        torch.arange(count + 1, device=device) * side // count
        for side, count in zip(grid.sides, smaller.sides, strict=True)
    ]
    first = tuple(_along(bound[:-1], axis) for axis, bound in enumerate(bounds))
    length = tuple(_along(bound.diff(), axis) for axis, bound in enumerate(bounds))
    return first, length  # type: ignore[return-value]  # three of each


def _along(values: Tensor, axis: int) -> Tensor:
    """Values of one axis, to be broadcast over (frames, height, width)."""
    return values.view([-1 if other == axis else 1 for other in range(3)])


def _number_tokens(grid: TokenGrid, frame: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Token numbers of places that broadcast to (..., frames, height, width). Flattened."""
    return ((frame * grid.height + y) * grid.width + x).flatten()
