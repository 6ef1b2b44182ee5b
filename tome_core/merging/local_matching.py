"""Bipartite soft matching among neighbours: cost grows linearly with the tokens."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from ..constants import constant
from ..faster_forms import find_form
from ..grid import TokenGrid
from ..tokens import take_tokens
from .destinations import Destinations
from .global_matching import LEAST_NORM, absorb_most_similar
from .plan import MergePlan, SlotPlan
from .tiles import Tiling, balance_side

CELLS_PER_SIDE = 16
"""A tile has at most so many cells along each side, so that a token is compared with up to 18 x 18
dst tokens. Fewer are faster, and find pairs that are less alike."""


def match_local(metric: Tensor, grid: TokenGrid, dst: Destinations, merged: int) -> SlotPlan:
    """Merge the ``merged`` src tokens that are most similar to a dst nearby into it.

    As ``match_global``, but a token is compared only with the dst tokens of its own tile of cells
    and of the ring of cells around that tile: O(N·C). Where one tile holds the whole picture (at
    most ``CELLS_PER_SIDE`` cells a side, one frame), the plan is that of ``match_global``.

    Args:
        metric: (B, N, C) tokens whose cosine similarity decides, for each image alone.
        grid: where the N tokens lie.
        dst: one token for each cell, see ``choose_strided``.
        merged: R, at most so many src tokens are merged.
    """
    if faster := find_form("merging.match_local", metric.device, metric, grid, dst, merged):
        return faster(metric, grid, dst, merged)
    return match_in_tiles(metric, grid, dst, merged)


def match_in_tiles(metric: Tensor, grid: TokenGrid, dst: Destinations, merged: int) -> MergePlan:
    """As ``match_local``, on any device."""
    tiling, nearby = find_nearby(grid, *dst.cells)  # (tiles, K), places in dst.flat
    unit = F.normalize(metric, dim=-1, eps=LEAST_NORM)  # (B, N, C)
    compared = dst.flat.index_select(0, nearby.flatten())  # (tiles·K,), tokens
    unit_dst = take_tokens(unit, compared[None]).unflatten(1, nearby.shape)  # (B, tiles, K, C)

    similarity = tiling.fold(unit) @ unit_dst.mT  # (B, tiles, n, K), n of a tile
    best, which = similarity.max(dim=-1)  # (B, tiles, n)
    of_images = compared.view(1, *nearby.shape).expand(len(metric), -1, -1)  # (B, tiles, K)
    nearest = of_images.gather(2, which)  # (B, tiles, n)
    best = tiling.unfold(best[..., None]).squeeze(-1)  # (B, N)
    nearest = tiling.unfold(nearest[..., None]).squeeze(-1)  # (B, N)
    return absorb_most_similar(best, nearest, dst, merged)


@constant
def find_nearby(
    grid: TokenGrid, strides: tuple[int, int], shape: torch.Size, device: torch.device
) -> tuple[Tiling, Tensor]:
    """Tiles of tokens, and the numbers of the dst that the tokens of each are compared with: those
    of the tile's cells and of the ring of cells around them.

    Tiles are as equal as they can be, so little is padded.

    Args:
        strides: height and width of a cell.
        shape: of the dst tokens, (F, rows, columns). Beyond the picture the nearest dst token of
            the border stands again.

    Returns the tiling and (tiles, K) int64, places in ``dst.flat``; K = (cells down + 2)·(cells
    across + 2).
    """
    down, across = (
        balance_side(math.ceil(side / stride), CELLS_PER_SIDE)
        for side, stride in zip((grid.height, grid.width), strides, strict=True)
    )
    tiling = Tiling(grid, down * strides[0], across * strides[1])
    frames, rows, columns = shape
    row = _number_ringed(rows, tiling.rows, down, device)  # (tile rows, cells down + 2)
    column = _number_ringed(columns, tiling.columns, across, device)
    frame = torch.arange(frames, device=device).view(-1, 1, 1, 1, 1)
    first = (frame * rows + row[None, :, None, :, None]) * columns
    return tiling, rearrange(first + column[:, None, :], "f r k y x -> (f r k) (y x)")


def _number_ringed(cells: int, tiles: int, tile_size: int, device: torch.device) -> Tensor:
    """Along one side, the cells of each tile and one more at both ends. (tiles, tile_size + 2)."""
    first = torch.arange(tiles, device=device)[:, None] * tile_size - 1
    return (first + torch.arange(tile_size + 2, device=device)).clamp(0, cells - 1)
