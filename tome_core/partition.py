"""Which tokens may absorb others (dst) and which may be absorbed (src)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor

from .grid import TokenGrid


@dataclass(frozen=True)
class Partition:
    """Every token of a grid is either a source or a destination.

    src: (S,) int64, ascending token numbers. dst: (D,) int64. S + D = N.
    The same for all images of a batch: splitting the batch changes nothing.
    """

    src: Tensor
    dst: Tensor

    def to(self, device: torch.device) -> Partition:
        return Partition(
            self.src.to(device, non_blocking=True), self.dst.to(device, non_blocking=True)
        )


def strided_partition(
    grid: TokenGrid, stride_y: int, stride_x: int, generator: torch.Generator | None = None
) -> Partition:
    """One destination per stride_y x stride_x cell, ToMe for SD (arXiv 2303.17604) sec. 4.1.

    generator: draws a token of each cell; None takes its first. Rows and columns beyond the last
    whole cell hold sources only, as in the paper's code. Built on the CPU, so that one seed gives
    the same destinations on every device.

    Raises ValueError where the grid is smaller than one cell.
    """
    rows, columns = grid.height // stride_y, grid.width // stride_x
    if rows == 0 or columns == 0:
        raise ValueError(f"grid {grid} is smaller than one {stride_y}x{stride_x} cell")
    cells = (grid.frames, rows, columns)
    if generator is None:
        within = torch.zeros(cells, dtype=torch.int64)  # (F, rows, columns)
    else:
        within = torch.randint(stride_y * stride_x, cells, generator=generator)
    frame = torch.arange(grid.frames)[:, None, None]
    y = torch.arange(rows)[:, None] * stride_y + within // stride_x
    x = torch.arange(columns) * stride_x + within % stride_x
    dst = ((frame * grid.height + y) * grid.width + x).flatten()  # (D,)
    is_src = torch.ones(grid.tokens, dtype=torch.bool).index_fill_(0, dst, False)
    return Partition(src=is_src.nonzero().flatten(), dst=dst)


def seeded_generator(*identity: int | str) -> torch.Generator:
    """A CPU generator that depends on ``identity`` only, such as (seed, step, layer name)."""
    digest = hashlib.blake2b(repr(identity).encode(), digest_size=8).digest()
    return torch.Generator("cpu").manual_seed(int.from_bytes(digest, "big"))
