"""Bipartite soft matching among neighbours: cost grows linearly with the tokens."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from .grid import TokenGrid
from .matching import absorb_most_similar
from .plan import MergePlan
from .tiles import Tiling, balanced_side

CELLS_PER_SIDE = 16
"""Of a tile, at most: a token is compared with up to 324 destinations. Fewer are faster and find
pairs that are less alike, see benchmarks/similarity.py."""


def match_local(
    metric: Tensor, grid: TokenGrid, dst: Tensor, stride_y: int, stride_x: int, merged: int
) -> MergePlan:
    """Merge the ``merged`` sources that are most similar to a destination nearby into it.

    As ``match_global``, but a source is compared only with the destinations of its own tile of
    cells and of the ring of cells around it: O(N·C).

    metric: (B, N, C) tokens whose cosine similarity decides. dst: (F, rows, columns) int64 token
    numbers, one per stride_y x stride_x cell, see ``strided_destinations``. merged: R, clamped to
    the number of sources.
    """
    cells_y, cells_x = cells_per_tile(grid, stride_y, stride_x)
    tiling = Tiling(grid, cells_y * stride_y, cells_x * stride_x)

    unit_dst = F.normalize(metric.index_select(1, dst.flatten()), dim=-1)  # (B, D, C)
    nearby = _with_ring(
        unit_dst.unflatten(1, dst.shape).flatten(0, 1), tiling, cells_y, cells_x, 0.0
    )
    nearby = nearby.unflatten(0, (-1, tiling.tiles))  # (B, tiles, K, C)
    slots = torch.arange(dst.numel(), device=metric.device).reshape(*dst.shape, 1)
    nearby_slots = _with_ring(slots, tiling, cells_y, cells_x, -1).squeeze(-1)  # (tiles, K)

    similarity = tiling.fold(metric) @ nearby.mT  # (B, tiles, T, K), times the token's norm
    similarity.masked_fill_((nearby_slots < 0)[:, None], float("-inf"))
    best, which = similarity.max(dim=-1)  # (B, tiles, T)
    nearest = nearby_slots.expand(len(metric), -1, -1).gather(2, which)
    best = tiling.unfold(best[..., None]).squeeze(-1)  # (B, N)
    norm = torch.linalg.vector_norm(metric, dim=-1).clamp_min(torch.finfo(metric.dtype).tiny)
    return absorb_most_similar(
        best / norm,
        tiling.unfold(nearest[..., None]).squeeze(-1),
        dst.flatten(),
        min(merged, grid.tokens - dst.numel()),
    )


def cells_per_tile(grid: TokenGrid, stride_y: int, stride_x: int) -> tuple[int, int]:
    """Cells down and across a tile; tiles are as equal as they can be, so little is padded."""
    return (
        balanced_side(math.ceil(grid.height / stride_y), CELLS_PER_SIDE),
        balanced_side(math.ceil(grid.width / stride_x), CELLS_PER_SIDE),
    )


def _with_ring(cells: Tensor, tiling: Tiling, cells_y: int, cells_x: int, fill: float) -> Tensor:
    """Cells of each tile and of the ring of cells around it.

    cells: (P, rows, columns, C), one picture each. Returns (P·tile rows·tile columns, K, C) with
    K = (cells_y + 2)·(cells_x + 2), ``fill`` beyond the picture.
    """
    below = tiling.rows * cells_y - cells.shape[1] + 1
    right = tiling.columns * cells_x - cells.shape[2] + 1
    ringed = F.pad(cells, (0, 0, 1, right, 1, below), value=fill)
    windows = ringed.unfold(1, cells_y + 2, cells_y).unfold(2, cells_x + 2, cells_x)
    return rearrange(windows, "p r k c y x -> (p r k) (y x) c")
