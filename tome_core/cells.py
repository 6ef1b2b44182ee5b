"""Cells: which tokens of a grid each token of a smaller grid stands for."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from .draws import Draws
from .grid import TokenGrid

Sides = tuple[Tensor, Tensor, Tensor]
"""Along frames, height and width; each tensor broadcasts to (F', H', W')."""


@lru_cache(maxsize=32)
@torch.inference_mode(False)
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


def draw_tokens(grid: TokenGrid, smaller: TokenGrid, times: int, draws: Draws) -> Tensor:
    """Random tokens of each cell: stratified, or jittered, sampling. (times, M) int64.

    Each draw is uniform over the cell. No token is drawn twice before the whole cell was drawn:
    the draws go round the cell, from a random token on.
    """
    (frame, y, x), (frames, height, width) = _bound_cells(grid, smaller, draws.device)
    sizes = frames * height * width  # (F', H', W')
    turn = torch.arange(times, device=draws.device).view(-1, 1, 1, 1)
    within = (draws.draw_below(sizes) + turn) % sizes  # (times, F', H', W')
    frame = frame + within // (height * width)
    y = y + within // width % height
    return _number_tokens(grid, frame, y, x + within % width).view(times, -1)


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def count_tokens(grid: TokenGrid, smaller: TokenGrid, device: torch.device) -> Tensor:
    """Tokens of each cell, (1, M) float32."""
    _, (frames, height, width) = _bound_cells(grid, smaller, device)
    return (frames * height * width).float().view(1, -1)


@lru_cache(maxsize=32)
@torch.inference_mode(False)
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
