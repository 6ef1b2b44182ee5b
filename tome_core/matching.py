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
    the destinations first, then the sources that stay.

    Source: ToMe (arXiv 2210.09461) sec. 3, with the partition of ToMe for SD (arXiv 2303.17604).
    Compares every source with every destination: O(N²·C).
    """
    batch, tokens, _ = metric.shape
    src, dst = partition.src, partition.dst
    merged = min(merged, src.numel())
    unit = F.normalize(metric, dim=-1)
    similarity = unit[:, src] @ unit[:, dst].mT  # (B, S, D)
    best, nearest = similarity.max(dim=-1)  # (B, S)
    absorbed = best.topk(merged, dim=-1, sorted=False).indices  # (B, R)
    stays = torch.ones_like(nearest, dtype=torch.bool).scatter_(1, absorbed, False)  # (B, S)
    own_slot = dst.numel() - 1 + stays.cumsum(dim=1)  # (B, S)
    assign = torch.empty(batch, tokens, dtype=torch.int64, device=metric.device)  # (B, N)
    assign[:, dst] = torch.arange(dst.numel(), device=metric.device)
    assign[:, src] = torch.where(stays, own_slot, nearest)
    return MergePlan.from_assignment(assign, tokens - merged)
