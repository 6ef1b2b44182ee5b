"""Attention with local windows, computed with every score in memory."""

from __future__ import annotations

import torch
from token_merge.tome_core.cells import count_tokens
from token_merge.tome_core.window_plan import WindowPlan
from torch import Tensor


def attend_densely(
    plan: WindowPlan, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    """As ``attend_windows``, with as many heads of keys as of queries."""
    scores = (q * scale) @ k.mT + weigh_all(plan)
    if mask is not None:
        scores = scores + mask
    return scores.softmax(dim=-1) @ v


def weigh_all(plan: WindowPlan) -> Tensor:
    """The log of how many tokens each key stands for, for every query. (L, L)"""
    stream, window = plan.stream, plan.window
    first, behind = stream.before, stream.before + stream.grid.tokens
    sizes = count_tokens(stream.grid, plan.smaller, plan.kept.device)[0]
    weights = torch.zeros(stream.length, stream.length)
    weights[:, first:behind] = float("-inf")
    others = [*range(first), *range(behind, stream.length)]
    for query in others:
        weights[query, plan.kept[0] + first] = sizes.log()
    for kept, tiles in zip(plan.kept, plan.deal(plan.order), strict=True):
        for tile in tiles.tolist():
            for query in window.queries[tile]:
                weights[query, kept + first] = sizes.log()
                weights[query, window.near[tile]] = 0.0
    return weights
