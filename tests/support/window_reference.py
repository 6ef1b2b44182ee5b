"""Attention with local windows, computed with every score in memory."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from token_merge.tome_core.drawn_keys import DrawnKeys
from token_merge.tome_core.merged_queries import MergedQueries
from token_merge.tome_core.window_plan import WindowPlan
from torch import Tensor


def attend_densely(
    plan: WindowPlan, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    """As ``attend_windows``."""
    weights = weigh_all(plan, q.shape[1])
    repeats = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(repeats, dim=1) for x in (k, v))
    scores = (q * scale) @ k.mT
    if plan.merged and (mask is None or mask.shape[2] == 1):
        of_far = (take_far_queries(plan, q) * scale) @ k.mT
        scores = torch.where(weigh_sets(plan, plan.far, q.shape[1]) > 0, of_far, scores)
    scores = scores + weights.log()
    if mask is not None:
        scores = scores + mask
    return scores.softmax(dim=-1) @ v


def take_far_queries(plan: WindowPlan, q: Tensor) -> Tensor:
    """The query by which each token reads the keys out of its box. (B, H, L, D)"""
    queries = plan.queries.view(plan.merged.slots.shape[1:])  # (S, Q)
    strip, place = plan.places // queries.shape[1], plan.places % queries.shape[1]
    found = q.clone()
    for image, (kept, slots) in enumerate(zip(plan.merged.kept, plan.merged.slots, strict=True)):
        numbers = queries[strip, kept[strip, slots[strip, place]]]
        plan.stream.take_picture(found)[image] = q[image, :, numbers]
    return found


def weigh_all(plan: WindowPlan, heads: int) -> Tensor:
    """How many tokens each key stands for, for every head and query; 0: unread. (H, L, L)"""
    stream = plan.stream
    first, behind = stream.before, stream.before + stream.grid.tokens
    weights = weigh_sets(plan, plan.sets, heads)
    weights[:, :, :first] = weights[:, :, behind:] = 1
    if plan.of_others:
        of_others = weigh_tile(plan.of_others, (0, 0, 0), plan, heads)
        weights[:, :first] += of_others[:, None]
        weights[:, behind:] += of_others[:, None]
    return weights


def weigh_sets(plan: WindowPlan, sets: Sequence[DrawnKeys], heads: int) -> Tensor:
    """The same of some sets, for the picture's queries. (H, L, L)"""
    weights = torch.zeros(heads, plan.stream.length, plan.stream.length)
    tiles = torch.cartesian_prod(*map(torch.arange, plan.tiles)).view(-1, 3).tolist()
    done: set[int] = set()
    for tile, queries in zip(tiles, plan.queries.tolist(), strict=True):
        of_tile = sum(weigh_tile(keys, tile, plan, heads) for keys in sets)
        for query in {*queries} - done:
            weights[:, query] += of_tile
        done |= {*queries}  # a tile that reaches over the end holds the first queries once more
    return weights


def weigh_tile(keys: DrawnKeys, tile: list[int], plan: WindowPlan, heads: int) -> Tensor:
    """How many tokens each key of one set stands for, for the queries of one tile. (H, L)"""
    row = 0
    for axis in keys.of.rows:
        row = row * plan.tiles[axis] + tile[axis]
    start = tile[keys.of.windowed] * keys.layout.step
    weights = torch.zeros(heads, plan.stream.length)
    for head in range(heads):
        numbers = keys.numbers[head % len(keys.numbers), row, start : start + keys.window]
        weights[head].index_add_(0, numbers, torch.full(numbers.shape, keys.weight))
    return weights


def check_slots(merged: MergedQueries) -> None:
    """Each query has a slot of its strip; one that remains has its own."""
    queries, left = merged.slots.shape[2], merged.kept.shape[2]
    assert ((merged.slots >= 0) & (merged.slots < left)).all()
    assert ((merged.kept >= 0) & (merged.kept < queries)).all()
    own = merged.slots.gather(2, merged.kept)
    assert torch.equal(own, torch.arange(left).expand_as(own))
