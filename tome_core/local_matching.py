"""Bipartite soft matching among neighbours: cost grows linearly with the tokens."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from .global_matching import absorb_most_similar
from .grid import TokenGrid
from .partition import Destinations
from .plan import MergePlan
from .tiles import Tiling, balance_side

CELLS_PER_SIDE = 16
"""Of a tile, at most: a token is compared with up to 18 x 18 dst tokens. Fewer are faster and find
pairs that are less alike, see benchmarks/README.md, "similarity"."""


def match_local(metric: Tensor, grid: TokenGrid, dst: Destinations, merged: int) -> MergePlan:
    """Merge the ``merged`` src tokens that are most similar to a dst nearby into it.

    As ``match_global``, but a token is compared only with the dst tokens of its own tile of cells
    and of the ring of cells around that tile: O(N·C).

    Args:
        metric: (B, N, C) tokens whose cosine similarity decides, for each image alone.
        grid: where the N tokens lie.
        dst: one token for each cell, see ``choose_strided``.
        merged: R, how many tokens become fewer; at most the number of src tokens.
    """
    cells = count_cells(grid, dst)
    tiling = Tiling(grid, cells[0] * dst.stride_y, cells[1] * dst.stride_x)

    unit_dst = F.normalize(metric.index_select(1, dst.flat), dim=-1)  # (B, D, C)
    nearby = _add_ring(unit_dst.unflatten(1, dst.tokens.shape).flatten(0, 1), tiling, cells, 0.0)
    nearby = nearby.unflatten(0, (-1, tiling.tiles))  # (B, tiles, K, C)
    nearby_slots = _number_nearby(tiling, cells, dst.tokens.shape, metric.device)  # (tiles, K)

    similarity = tiling.fold(metric) @ nearby.mT  # (B, tiles, T, K), times the token's norm
    similarity.masked_fill_((nearby_slots < 0)[:, None], float("-inf"))
    best, which = similarity.max(dim=-1)  # (B, tiles, T)
    nearest = nearby_slots.expand(len(metric), -1, -1).gather(2, which)
    best = tiling.unfold(best[..., None]).squeeze(-1)  # (B, N)
    norm = torch.linalg.vector_norm(metric, dim=-1).clamp_min(torch.finfo(metric.dtype).tiny)
    nearest = tiling.unfold(nearest[..., None]).squeeze(-1)  # (B, N)
    return absorb_most_similar(best / norm, nearest, dst, merged)


def count_cells(grid: TokenGrid, dst: Destinations) -> tuple[int, int]:
    """Cells down and across a tile; tiles are as equal as they can be, so little is padded."""
    return (
        balance_side(math.ceil(grid.height / dst.stride_y), CELLS_PER_SIDE),
        balance_side(math.ceil(grid.width / dst.stride_x), CELLS_PER_SIDE),
    )


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def _number_nearby(
    tiling: Tiling, cells: tuple[int, int], shape: torch.Size, device: torch.device
) -> Tensor:
    """The slots of the dst tokens that a tile's tokens are compared with, -1 beyond the picture.

    shape: of the dst tokens, (F, rows, columns). Returns (tiles, K) int64.
    """
    slots = torch.arange(shape.numel(), device=device).reshape(*shape, 1)
    return _add_ring(slots, tiling, cells, -1).squeeze(-1)


def _add_ring(values: Tensor, tiling: Tiling, cells: tuple[int, int], fill: float) -> Tensor:
    """Values of the cells of each tile and of the ring of cells around it.

    values: (P, rows, columns, C), one picture each. cells: down and across a tile. Returns
    (P·tile rows·tile columns, K, C) with K = (cells down + 2)·(cells across + 2), ``fill`` beyond
    the picture.
    """
    down, across = cells
    below = tiling.rows * down - values.shape[1] + 1
    right = tiling.columns * across - values.shape[2] + 1
    ringed = F.pad(values, (0, 0, 1, right, 1, below), value=fill)
    windows = ringed.unfold(1, down + 2, down).unfold(2, across + 2, across)
    return rearrange(windows, "p r k c y x -> (p r k) (y x) c")
