"""Bipartite soft matching over all pairs: the readable reference of the faster matchings."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .partition import Partition
from .plan import MergePlan


def match_global(metric: Tensor, partition: Partition, merged: int) -> MergePlan:
    """Merge the ``merged`` sources that are most similar to a destination into it.

    metric: (B, N, C) tokens whose cosine similarity decides. merged: R, at most the number of
    sources; more are clamped to it, as in the paper's code. Returns a plan with N - R slots,
    the destinations first, then the tokens that stay.

    Source: ToMe (arXiv 2210.09461) sec. 3, with the partition of ToMe for SD (arXiv 2303.17604).
    Compares every source with every destination: O(N²·C).
    """
    src, dst = partition.src, partition.dst
    unit = F.normalize(metric, dim=-1)
    similarity = unit[:, src] @ unit[:, dst].mT  # (B, S, D)
    src_best, src_nearest = similarity.max(dim=-1)  # (B, S)
    best = metric.new_full(metric.shape[:2], float("-inf"))  # (B, N)
    nearest = torch.zeros_like(best, dtype=torch.int64)  # (B, N)
    best[:, src], nearest[:, src] = src_best, src_nearest
    return absorb_most_similar(best, nearest, dst, min(merged, src.numel()))


def absorb_most_similar(best: Tensor, nearest: Tensor, dst: Tensor, merged: int) -> MergePlan:
    """The plan that merges the ``merged`` tokens of highest ``best`` into their ``nearest``.

    best: (B, N) similarity to the nearest destination; those of destinations are ignored.
    nearest: (B, N) int64, position in ``dst``, (D,) token numbers.
    By selection, not by sorting; nothing waits for the device.
    """
    best = best.index_fill(1, dst, float("-inf"))
    absorbed = best.topk(merged, dim=1, sorted=False).indices  # (B, R)
    stays = torch.ones_like(nearest, dtype=torch.bool).scatter_(1, absorbed, False)  # (B, N)
    stays.index_fill_(1, dst, False)
    own_slot = dst.numel() - 1 + stays.cumsum(dim=1)  # (B, N)
    assign = torch.where(stays, own_slot, nearest)
    assign[:, dst] = torch.arange(dst.numel(), device=dst.device)
    return MergePlan.from_assignment(assign, best.shape[1] - merged, dst)
