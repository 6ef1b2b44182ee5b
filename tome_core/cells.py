"""Cells: which tokens of a grid each token of a smaller grid stands for."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .grid import TokenGrid


@dataclass(frozen=True)
class Cells:
    """``grid`` divided into as many boxes of whole tokens as ``smaller`` has tokens.

    Side lengths differ by at most one token where a side of ``smaller`` does not divide that of
    ``grid``; no token is left out. Neither side of ``smaller`` may be longer.
    """

    grid: TokenGrid
    smaller: TokenGrid

    def nearest(self, *, centred: bool) -> Tensor:
        """The token that nearest-neighbour downsampling keeps of each cell. (M,) int64.

        centred: pick at cell centres ("nearest-exact") instead of cell corners ("nearest").
        """

        def picks(side: int, smaller_side: int) -> Tensor:
            cell = torch.arange(smaller_side)
            if centred:
                return (2 * cell + 1) * side // (2 * smaller_side)
            return cell * side // smaller_side

        grid, smaller = self.grid, self.smaller
        frame = picks(grid.frames, smaller.frames)[:, None, None]
        y = picks(grid.height, smaller.height)[:, None]
        return self._numbers(frame, y, picks(grid.width, smaller.width))

    def drawn(self, draws: int, generator: torch.Generator) -> Tensor:
        """Random tokens of each cell: stratified, or jittered, sampling. (draws, M) int64.

        Each draw is uniform over the cell, and none repeats another before the whole cell was
        drawn: they go round the cell from a random token on. Drawn on the CPU, so that one seed
        gives the same tokens on every device.
        """
        first, length = zip(*self._bounds(), strict=True)
        frames, height, width = length
        sizes = frames * height * width  # (F', H', W')
        start = (torch.rand(sizes.shape, generator=generator) * sizes).long()
        within = (start + torch.arange(draws).view(-1, 1, 1, 1)) % sizes  # (draws, F', H', W')
        frame = first[0] + within // (height * width)
        y = first[1] + within // width % height
        return self._numbers(frame, y, first[2] + within % width).view(draws, -1)

    def _bounds(self) -> list[tuple[Tensor, Tensor]]:
        """First token and length of the cells along frames, height and width.

        Each to be broadcast to (F', H', W').
        """
        grid, smaller = self.grid, self.smaller
        sides = (grid.frames, grid.height, grid.width)
        counts = (smaller.frames, smaller.height, smaller.width)
        found: list[tuple[Tensor, Tensor]] = []
        for axis, (side, count) in enumerate(zip(sides, counts, strict=True)):
            bounds = torch.arange(count + 1) * side // count
            along = [-1 if other == axis else 1 for other in range(len(sides))]
            found.append((bounds[:-1].view(along), bounds.diff().view(along)))
        return found

    def _numbers(self, frame: Tensor, y: Tensor, x: Tensor) -> Tensor:
        """Token numbers of places that broadcast to (frames, height, width). (M,) int64."""
        return ((frame * self.grid.height + y) * self.grid.width + x).flatten()
