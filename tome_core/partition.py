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

    @classmethod
    def of_destinations(cls, dst: Tensor, tokens: int) -> Partition:
        """All tokens but ``dst``, (D,) on the CPU, are sources."""
        is_src = torch.ones(tokens, dtype=torch.bool).index_fill_(0, dst, False)
        return cls(src=is_src.nonzero().flatten(), dst=dst)


def strided_destinations(
    grid: TokenGrid, stride_y: int, stride_x: int, generator: torch.Generator | None = None
) -> Tensor:
    """One token per stride_y x stride_x cell, ToMe for SD (arXiv 2303.17604) sec. 4.1.

    generator: draws a token of each cell; None takes its first. Rows and columns beyond the last
    whole cell have none, as in the paper's code. Built on the CPU, so that one seed gives the
    same destinations on every device.

    Returns token numbers, (frames, cells down, cells across) int64.
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
    return (frame * grid.height + y) * grid.width + x


def strided_partition(
    grid: TokenGrid, stride_y: int, stride_x: int, generator: torch.Generator | None = None
) -> Partition:
    """The destinations of ``strided_destinations``; every other token is a source."""
    dst = strided_destinations(grid, stride_y, stride_x, generator)
    return Partition.of_destinations(dst.flatten(), grid.tokens)


def kth_partition(tokens: int, k: int) -> Partition:
    """Every k-th token is a destination: bipartite (k = 2) and k-th bipartite soft matching.

    Source: ToMe (arXiv 2210.09461) sec. 3 and its code, which takes the last of every k. Tokens
    beyond the last whole group, which that code drops, are sources.
    Raises ValueError where there are fewer than k tokens.
    """
    if tokens < k:
        raise ValueError(f"{tokens} tokens are fewer than one group of {k}")
    dst = torch.arange(k - 1, tokens, k)
    return Partition.of_destinations(dst, tokens)


def random_partition(tokens: int, sources: int, generator: torch.Generator) -> Partition:
    """``sources`` random tokens are sources: random bipartite soft matching of ToMe's code."""
    return Partition.of_destinations(
        torch.randperm(tokens, generator=generator)[sources:].sort().values, tokens
    )


def seeded_generator(*identity: int | str) -> torch.Generator:
    """A CPU generator that depends on ``identity`` only, such as (seed, step, layer name)."""
    digest = hashlib.blake2b(repr(identity).encode(), digest_size=8).digest()
    return torch.Generator("cpu").manual_seed(int.from_bytes(digest, "big"))
