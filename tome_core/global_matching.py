"""Bipartite soft matching over all pairs: the readable reference of the faster matchings."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .grid import TokenGrid
from .partition import Destinations
from .plan import MergePlan


def match_global(metric: Tensor, grid: TokenGrid, dst: Destinations, merged: int) -> MergePlan:
    """Merge the ``merged`` src tokens that are most similar to a dst into it.

    Args:
        metric: (B, N, C) tokens whose cosine similarity decides, for each image alone.
        grid: of the N tokens; this matching compares all of them, wherever they lie.
        dst: the same for all images.
        merged: R, how many tokens become fewer; at most the number of src tokens.

    Returns a plan with N - R slots, those of the dst tokens first.

    Source: ToMe (arXiv 2210.09461) sec. 3, with the partition of ToMe for SD (arXiv 2303.17604).
    Compares every token with every dst: O(N²·C).
    """
    unit = F.normalize(metric, dim=-1)
    similarity = unit @ unit[:, dst.flat].mT  # (B, N, D)
    best, nearest = similarity.max(dim=-1)  # (B, N)
    return absorb_most_similar(best, nearest, dst, merged)


def absorb_most_similar(best: Tensor, nearest: Tensor, dst: Destinations, merged: int) -> MergePlan:
    """The plan that merges the ``merged`` tokens of highest ``best`` into their ``nearest``.

    best: (B, N) similarity to the nearest dst; that of dst tokens is ignored. nearest: (B, N)
    int64, which of the D dst tokens it is. By selection, not by sorting; nothing waits for the
    device.
    """
    batch, tokens = best.shape
    best = best.index_fill(1, dst.flat, float("-inf"))
    absorbed = best.topk(min(merged, tokens - dst.count), dim=1, sorted=False).indices  # (B, R)
    stays = torch.ones_like(nearest, dtype=torch.bool).scatter_(1, absorbed, False)  # (B, N)
    stays.index_fill_(1, dst.flat, False)
    own_slot = dst.count - 1 + stays.cumsum(dim=1)  # (B, N)
    assign = torch.where(stays, own_slot, nearest)
    of_dst = torch.arange(dst.count, device=best.device).expand(batch, -1)  # (B, D)
    assign.index_copy_(1, dst.flat, of_dst)

    number = torch.arange(tokens, device=best.device).expand(batch, -1)  # (B, N)
    chosen = number.new_empty(batch, tokens - absorbed.shape[1])  # (B, M)
    # Several tokens write to the slot of a dst, in no certain order; the last line corrects it.
    chosen.scatter_(1, assign, number)
    chosen[:, : dst.count] = dst.flat
    return MergePlan(assign, chosen)
