"""Attention with local windows, computed with every score in memory."""

from __future__ import annotations

import torch
from token_merge.tome_core.cells import count_tokens
from token_merge.tome_core.window_plan import WindowPlan
from torch import Tensor


def attend_densely(
    plan: WindowPlan, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    """As ``attend_windows``."""
    weights = weigh_all(plan, k.shape[1])
    repeats = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(repeats, dim=1) for x in (k, v))
    scores = (q * scale) @ k.mT + weights.repeat_interleave(repeats, dim=0)
    if mask is not None:
        scores = scores + mask
    return scores.softmax(dim=-1) @ v


def weigh_all(plan: WindowPlan, heads: int) -> Tensor:
    """The log of how many tokens each key stands for, for every head and query. (H, L, L)"""
    stream, window = plan.stream, plan.window
    first, behind = stream.before, stream.before + stream.grid.tokens
    sizes = count_tokens(stream.grid, plan.smaller, plan.kept.device)[0]
    weights = torch.zeros(heads, stream.length, stream.length)
    weights[:, :, first:behind] = float("-inf")
    others = [*range(first), *range(behind, stream.length)]
    tiles_of_draw = plan.deal(plan.order[:, None])
    draws = len(plan.kept)
    for head in range(heads):
        for query in others:
            weights[head, query, plan.kept[head % draws] + first] = sizes.log()
        for draw, tiles in enumerate(tiles_of_draw):
            kept = plan.kept[(draw + head) % draws] + first
            for tile in tiles.flatten().tolist():
                for query in window.queries[tile]:
                    weights[head, query, kept] = sizes.log()
                    weights[head, query, window.near[tile]] = 0.0
    return weights


def check_drawn_inside(plan: WindowPlan, heads: int) -> None:
    """The drawn keys within each box are found, and have their weights."""
    first = plan.stream.before
    sizes = count_tokens(plan.stream.grid, plan.smaller, plan.kept.device)[0].float()
    drawn, bias = plan.list_drawn_inside(torch.float32, heads)
    draws = len(plan.kept)
    assert len(drawn) == (1 if draws == 1 else heads)
    for draw, (near, *of_tiles) in enumerate(
        zip(*map(plan.deal, (plan.boxes[1], drawn, bias)), strict=True)
    ):
        for head, of_head in enumerate(zip(*of_tiles, strict=True)):
            kept = plan.kept[(draw + head) % draws] + first
            for box, numbers, weights in zip(near, *of_head, strict=True):
                inside, found = torch.isin(kept, box), weights > -1000
                assert torch.equal(numbers[found], kept[inside])
                weighed = plan.common_size * weights[found].exp()
                torch.testing.assert_close(weighed, sizes[inside])
