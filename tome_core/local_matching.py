"""Bipartite soft matching among neighbours: cost grows linearly with the tokens."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .grid import TokenGrid
from .matching import absorb_most_similar
from .plan import MergePlan
from .tiles import Tiling

CELLS_PER_SIDE = 8
"""Of a tile: a token is compared with 100 destinations. 4 would be a little faster and finds
pairs that are less alike (benchmarks/similarity.py)."""


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
    tiling = Tiling(grid, CELLS_PER_SIDE * stride_y, CELLS_PER_SIDE * stride_x)

    unit_dst = F.normalize(metric.index_select(1, dst.flatten()), dim=-1)  # (B, D, C)
    nearby = _with_ring(unit_dst.unflatten(1, dst.shape).flatten(0, 1), tiling, 0.0)
    nearby = nearby.unflatten(0, (-1, tiling.tiles))  # (B, tiles, K, C)
    slots = torch.arange(dst.numel(), device=metric.device).reshape(*dst.shape, 1)
    nearby_slots = _with_ring(slots, tiling, -1).squeeze(-1)  # (tiles, K)

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


def _with_ring(cells: Tensor, tiling: Tiling, fill: float) -> Tensor:
    """Cells of each tile and of the ring of cells around it.

    cells: (P, rows, columns, C), one picture each. Returns (P·tile rows·tile columns, K, C) with
    K = (CELLS_PER_SIDE + 2)², ``fill`` beyond the picture.
    """
    below = tiling.rows * CELLS_PER_SIDE - cells.shape[1] + 1
    right = tiling.columns * CELLS_PER_SIDE - cells.shape[2] + 1
    ringed = F.pad(cells, (0, 0, 1, right, 1, below), value=fill)
    side = CELLS_PER_SIDE + 2
    windows = ringed.unfold(1, side, CELLS_PER_SIDE).unfold(2, side, CELLS_PER_SIDE)
    return windows.permute(0, 1, 2, 4, 5, 3).reshape(-1, side * side, cells.shape[3])
