"""Soft merging within tiles: merge and unmerge as one small linear map per tile."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from .grid import TokenGrid
from .tiles import Tiling, balanced_side

TILE_SIDE = 8
"""Most tokens per side; 64 tokens a tile, as ToMA's 64 tiles of a 64x64 grid."""
SHARPNESS = 1000.0
"""Scale of the similarities before the softmax, as in ToMA's released code: nearly hard."""


@dataclass(frozen=True)
class TilePlan:
    """Every tile's T tokens become D mixtures of them, and back.

    merge_weights: (B, tiles, D, T), rows sum to one. unmerge_weights: (B, tiles, T, D), rows sum
    to one.
    """

    tiling: Tiling
    merge_weights: Tensor
    unmerge_weights: Tensor

    @property
    def slots(self) -> int:
        """M, tokens that remain: D of each tile."""
        return self.tiling.tiles * self.merge_weights.shape[2]

    @property
    def shape(self) -> tuple[int, int]:
        """(B, N) of the tokens it merges."""
        return (self.merge_weights.shape[0], self.tiling.grid.tokens)

    def merge(self, x: Tensor) -> Tensor:
        """(B, N, C) -> (B, M, C)."""
        return (self.merge_weights.to(x.dtype) @ self.tiling.fold(x)).flatten(1, 2)

    def unmerge(self, y: Tensor) -> Tensor:
        """(B, M, C) -> (B, N, C)."""
        tiles = y.unflatten(1, (self.tiling.tiles, -1))  # (B, tiles, D, C)
        return self.tiling.unfold(self.unmerge_weights.to(y.dtype) @ tiles)


def match_tiles(metric: Tensor, grid: TokenGrid, kept: int) -> TilePlan:
    """Merge by attention of each tile's tokens to the destinations chosen in it.

    metric: (B, N, C) tokens whose cosine similarity decides, per image. kept: M, most tokens
    that remain; every tile keeps the same number, at least one.

    Source: ToMA (arXiv 2509.10918) sec. 4: facility location within tiles, merge weights the
    row-normalised softmax over destinations, unmerge weights its transpose.
    """
    height, width = (balanced_side(side, TILE_SIDE) for side in (grid.height, grid.width))
    tiling = Tiling(grid, height, width)
    inside = tiling.inside(metric.device)  # (tiles, T)
    unit = F.normalize(tiling.fold(metric).float(), dim=-1)  # (B, tiles, T, C)
    similarity = unit @ unit.mT  # (B, tiles, T, T)
    chosen = facility_location(similarity, inside, max(1, kept // tiling.tiles))  # (B, tiles, D)
    to_destination = similarity.take_along_dim(chosen[..., None], dim=2)  # (B, tiles, D, T)
    unmerge_weights = (SHARPNESS * to_destination).softmax(dim=2).mT  # (B, tiles, T, D)
    merge_weights = (unmerge_weights * inside[:, :, None]).mT  # (B, tiles, D, T)
    merge_weights = merge_weights / merge_weights.sum(dim=-1, keepdim=True).clamp_min(1e-6)
    return TilePlan(tiling, merge_weights, unmerge_weights)


def facility_location(similarity: Tensor, inside: Tensor, destinations: int) -> Tensor:
    """The tokens that together are most similar to all, chosen greedily, one after the other.

    similarity: (B, tiles, T, T). inside: (tiles, T), True for tokens that may be chosen and are
    to be covered. Returns (B, tiles, destinations) int64; where a tile has fewer tokens than
    that, some are named twice.

    Source: ToMA (arXiv 2509.10918) sec. 4.1, eq. 4. The loop is over destinations, each of which
    depends on those before it; all images and tiles go at once.
    """
    covered = similarity.new_full(similarity.shape[:-1], -1.0)  # (B, tiles, T)
    chosen = []
    for _ in range(destinations):
        gain = (similarity - covered[:, :, None]).clamp_min(0)  # (B, tiles, T, T)
        gain = (gain * inside[:, None]).sum(dim=-1)  # (B, tiles, T)
        best = gain.masked_fill(~inside, -1.0).argmax(dim=-1, keepdim=True)  # (B, tiles, 1)
        chosen.append(best)
        row = similarity.take_along_dim(best[..., None], dim=2).squeeze(2)  # (B, tiles, T)
        covered = torch.maximum(covered, row)
    return torch.cat(chosen, dim=-1)
