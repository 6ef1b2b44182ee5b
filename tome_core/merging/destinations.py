"""Destinations: the tokens that others may merge into (dst). All other tokens are sources (src).

They are the same for all images of a batch, so splitting the batch changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ..cells import list_strided_cells
from ..draws import Draws
from ..grid import TokenGrid


@dataclass(frozen=True)
class Destinations:
    """tokens: (F, rows, columns) int64, one for each stride_y x stride_x cell of a frame.

    Destinations that lie in no cells are one row, with strides of 1.
    """

    tokens: Tensor
    stride_y: int = 1
    stride_x: int = 1

    @cached_property
    def flat(self) -> Tensor:
        """(number of dst,) int64."""
        return self.tokens.flatten()

    @property
    def cells(self) -> tuple[tuple[int, int], torch.Size, torch.device]:
        """Height and width of a cell, how many there are, and the device: all but what is drawn."""
        return (self.stride_y, self.stride_x), self.tokens.shape, self.tokens.device

    @property
    def count(self) -> int:
        """The number of dst."""
        return self.tokens.numel()


def choose_strided(
    grid: TokenGrid, stride_y: int, stride_x: int, draws: Draws | None, device: torch.device
) -> Destinations:
    """One token of each stride_y x stride_x cell, ToMe for SD (arXiv 2303.17604) sec. 4.1.

    draws: for a random token of each cell (``Draws.per_step`` for another one in each step); None
    takes the first. Rows and columns beyond the last whole cell have none, as in the paper's code.
    The grid must hold at least one cell.
    """
    cells = list_strided_cells(grid, stride_y, stride_x, device)
    tokens = cells.draw_independently(draws) if draws else cells.tokens[0]
    rows = tokens.view(grid.frames, grid.height // stride_y, grid.width // stride_x)
    return Destinations(rows, stride_y, stride_x)


def choose_every_kth(tokens: int, k: int, device: torch.device) -> Destinations:
    """Every k-th token: bipartite (k = 2) and k-th bipartite soft matching.

    Source: ToMe (arXiv 2210.09461) sec. 3 and its code, which takes the last of every k. Tokens
    beyond the last whole group, which that code drops, are sources. k is at most ``tokens``.
    """
    return Destinations(torch.arange(k - 1, tokens, k, device=device)[None, None])


def choose_random(tokens: int, count: int, draws: Draws) -> Destinations:
    """``count`` random tokens: random bipartite soft matching of ToMe's code."""
    return Destinations(draws.draw_order(tokens)[:count].sort().values[None, None])


def fit_strides(grid: TokenGrid, stride_y: int, stride_x: int, kept: int) -> tuple[int, int]:
    """The strides, both times the smallest whole number that leaves at most ``kept`` cells, or one
    cell a frame where there are more frames.

    Only a limit of tokens asks for more than the strides themselves. A cell stays within the grid.
    """
    for times in range(1, max(grid.height, grid.width) + 1):
        y, x = min(stride_y * times, grid.height), min(stride_x * times, grid.width)
        if grid.frames * (grid.height // y) * (grid.width // x) <= kept:
            break
    return y, x
