"""Soft merging within tiles: merge and unmerge as one small linear map per tile."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from .grid import TokenGrid
from .partition import Destinations
from .tiles import Tiling, balance_side
from .tokens import take_tokens

TILE_SIDE = 8
"""Most tokens per side; 64 tokens a tile, as ToMA's 64 tiles of a 64x64 grid."""
SHARPNESS = 1000.0
"""Scale of the similarities before the softmax, as in ToMA's released code: nearly hard."""


@dataclass(frozen=True)
class TilePlan:
    """The T tokens of each tile become D weighted means of them, and back.

    merge_weights: (B, tiles, D, T), rows sum to one. unmerge_weights: (B, tiles, T, D), rows sum
    to one. chosen: (B, M) int64, the dst token of each mean: the first one of each tile, the
    second one of each tile, and so on.
    """

    tiling: Tiling
    merge_weights: Tensor
    unmerge_weights: Tensor
    chosen: Tensor

    groups = 1
    window = None
    sizes = None
    """A weighted mean stands for no number of tokens."""

    @property
    def slots(self) -> int:
        return self.chosen.shape[1]

    @property
    def queries_left(self) -> int:
        return self.slots

    @property
    def shape(self) -> tuple[int, int]:
        return self.chosen.shape[0], self.tiling.grid.tokens

    def choose(self, x: Tensor) -> Tensor:
        return take_tokens(x, self.chosen)

    def merge(self, x: Tensor) -> Tensor:
        means = self.merge_weights.to(x.dtype) @ self.tiling.fold(x)  # (B, tiles, D, C)
        return rearrange(means, "b tiles d c -> b (d tiles) c")

    def unmerge(self, y: Tensor) -> Tensor:
        tiles = rearrange(y, "b (d tiles) c -> b tiles d c", tiles=self.tiling.tiles)
        return self.tiling.unfold(self.unmerge_weights.to(y.dtype) @ tiles)


def match_tiles(metric: Tensor, grid: TokenGrid, dst: Destinations | None, merged: int) -> TilePlan:
    """Merge by attention of each tile's tokens to the dst tokens that are chosen in the tile.

    Args:
        metric: (B, N, C) tokens whose cosine similarity decides, for each image alone.
        grid: where the N tokens lie.
        dst: not used: this matching chooses its own.
        merged: R, how many tokens become fewer at least. Every tile keeps the same number of
            tokens, at least one.

    Source: ToMA (arXiv 2509.10918) sec. 4: facility location within tiles, merge weights are the
    row-normalised softmax over dst tokens, unmerge weights its transpose.
    """
    height, width = (balance_side(side, TILE_SIDE) for side in (grid.height, grid.width))
    tiling = Tiling(grid, height, width)
    numbers = tiling.number_tokens(metric.device)  # (tiles, T)
    inside = numbers >= 0
    unit = F.normalize(tiling.fold(metric).float(), dim=-1)  # (B, tiles, T, C)
    similarity = unit @ unit.mT  # (B, tiles, T, T)
    kept = max(1, (grid.tokens - merged) // tiling.tiles)  # D
    places = locate_facilities(similarity, inside, kept)  # (B, tiles, D)
    to_dst = similarity.take_along_dim(places[..., None], dim=2)  # (B, tiles, D, T)
    unmerge_weights = (SHARPNESS * to_dst).softmax(dim=2).mT  # (B, tiles, T, D)
    merge_weights = (unmerge_weights * inside[:, :, None]).mT  # (B, tiles, D, T)
    merge_weights = merge_weights / merge_weights.sum(dim=-1, keepdim=True).clamp_min(1e-6)
    chosen = numbers.expand(len(metric), -1, -1).gather(2, places)  # (B, tiles, D)
    return TilePlan(tiling, merge_weights, unmerge_weights, chosen.mT.flatten(1))


def locate_facilities(similarity: Tensor, inside: Tensor, count: int) -> Tensor:
    """The tokens that together are most similar to all tokens, chosen one after the other.

    similarity: (B, tiles, T, T). inside: (tiles, T), True for tokens, False for padding. Returns
    places within the tile, (B, tiles, count) int64; where a tile has fewer tokens than that, some
    are chosen twice.

    Source: ToMA (arXiv 2509.10918) sec. 4.1, eq. 4. The loop is over dst tokens, each of which
    depends on those before it; all images and tiles are computed at once.
    """
    covered = similarity.new_full(similarity.shape[:-1], -1.0)  # (B, tiles, T)
    chosen = []
    for _ in range(count):
        gain = (similarity - covered[:, :, None]).clamp_min(0)  # (B, tiles, T, T)
        gain = (gain * inside[:, None]).sum(dim=-1)  # (B, tiles, T)
        best = gain.masked_fill(~inside, -1.0).argmax(dim=-1, keepdim=True)  # (B, tiles, 1)
        chosen.append(best)
        row = similarity.take_along_dim(best[..., None], dim=2).squeeze(2)  # (B, tiles, T)
        covered = torch.maximum(covered, row)
    return torch.cat(chosen, dim=-1)
