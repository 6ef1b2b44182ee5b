"""Bipartite soft matching among neighbours: cost grows linearly with the tokens."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from .global_matching import LEAST_NORM, absorb_most_similar
from .grid import TokenGrid
from .partition import Destinations
from .plan import MergePlan
from .tiles import Tiling, balance_side
from .tokens import take_tokens

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
    tiling, slots = find_nearby(grid, dst)  # (tiles, K)
    unit = F.normalize(metric, dim=-1, eps=LEAST_NORM)
    nearby = dst.flat.index_select(0, slots.flatten())  # (tiles·K,)
    unit_dst = take_tokens(unit, nearby[None]).unflatten(1, slots.shape)  # (B, tiles, K, C)

    similarity = tiling.fold(unit) @ unit_dst.mT  # (B, tiles, T, K)
    best, which = similarity.max(dim=-1)  # (B, tiles, T)
    nearest = nearby.view(1, *slots.shape).expand(len(metric), -1, -1).gather(2, which)
    best = tiling.unfold(best[..., None]).squeeze(-1)  # (B, N)
    nearest = tiling.unfold(nearest[..., None]).squeeze(-1)  # (B, N)
    return absorb_most_similar(best, nearest, dst, merged)


def find_nearby(grid: TokenGrid, dst: Destinations) -> tuple[Tiling, Tensor]:
    """Tiles of tokens, and the numbers of the dst that the tokens of each are compared with.

    Returns the tiling and (tiles, K) int64, places in ``dst.flat``.
    """
    cells = count_cells(grid, dst)
    tiling = Tiling(grid, cells[0] * dst.stride_y, cells[1] * dst.stride_x)
    return tiling, _number_nearby(tiling, cells, dst.tokens.shape, dst.tokens.device)


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
    """The dst tokens, by number, of each tile's cells and of the ring of cells around them.

    shape: of the dst tokens, (F, rows, columns). Beyond the picture the nearest dst token of the
    border stands again. Returns (tiles, K) int64 with K = (cells down + 2)·(cells across + 2).
    """
    frames, rows, columns = shape
    down = _number_ringed(rows, tiling.rows, cells[0], device)  # (tile rows, cells down + 2)
    across = _number_ringed(columns, tiling.columns, cells[1], device)
    frame = torch.arange(frames, device=device).view(-1, 1, 1, 1, 1)
    row = frame * rows + down[None, :, None, :, None]
    return rearrange(row * columns + across[:, None, :], "f r k y x -> (f r k) (y x)")


def _number_ringed(cells: int, tiles: int, of_tile: int, device: torch.device) -> Tensor:
    """Along one side, the cells of each tile and one more at both ends. (tiles, of_tile + 2)."""
    first = torch.arange(tiles, device=device)[:, None] * of_tile - 1
    return (first + torch.arange(of_tile + 2, device=device)).clamp(0, cells - 1)
