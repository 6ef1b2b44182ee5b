"""Attention with local windows as it is defined, with every score in memory."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..tokens import take_tokens
from .drawn_keys import DrawnKeys
from .plan import WindowPlan, allows_merging
from .queries import MergedQueries


def attend_densely(
    plan: WindowPlan, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    """softmax(q·kᵀ·scale + log w)·v, where each key weighs as much as the w tokens it stands for.

    As ``attend``, for sequences so short that L x L scores fit into memory.
    """
    heads = q.shape[1]
    k, v = (x.repeat_interleave(heads // x.shape[1], dim=1) for x in (k, v))
    scores = (q * scale) @ k.mT  # (B, H, L, L)
    if plan.merged and allows_merging(mask):
        is_far = weigh_picture(plan, plan.far, heads) > 0
        far_queries = replace_merged(plan, plan.merged, q)
        scores = torch.where(is_far, (far_queries * scale) @ k.mT, scores)
    scores = scores + weigh_keys(plan, heads).log()
    if mask is not None:
        scores = scores + mask
    return scores.softmax(dim=-1).to(v.dtype) @ v


def weigh_keys(plan: WindowPlan, heads: int) -> Tensor:
    """How many tokens each key stands for, for every head and query; 0: not read. (H, L, L)"""
    others = plan.geometry.others
    weights = weigh_picture(plan, (plan.near, *plan.far), heads)
    if plan.of_others:
        weights[:, others] += weigh_tiles(plan, plan.of_others, (1, 1, 1), heads)  # (H, 1, L)
    weights[:, :, others] = 1
    return weights


def weigh_picture(plan: WindowPlan, sets: Sequence[DrawnKeys], heads: int) -> Tensor:
    """The same of some sets, for the picture's queries. (H, L, L)"""
    geometry = plan.geometry
    length = geometry.stream.length
    tile = geometry.places // geometry.queries.shape[1]  # (N,), the tile of each token
    weights = torch.zeros(heads, length, length, device=tile.device)
    for keys in sets:
        of_tiles = weigh_tiles(plan, keys, geometry.tiles, heads)
        geometry.stream.take_picture(weights).add_(of_tiles[:, tile])
    return weights


def weigh_tiles(
    plan: WindowPlan, keys: DrawnKeys, tiles: tuple[int, int, int], heads: int
) -> Tensor:
    """How many tokens each key of one set stands for, for the queries of each tile. (H, T, L)"""
    layout, device = keys.layout, keys.numbers.device
    starts = layout.find_starts(tiles, device)  # (T,)
    read = starts[:, None] + torch.arange(layout.keys_read, device=device)
    numbers = keys.numbers.flatten(1)[:, read].long()  # (S, T, n)
    draws, count, _ = numbers.shape
    weights = torch.zeros(draws, count, plan.geometry.stream.length, device=device)
    weights.scatter_(2, numbers, layout.weight, reduce="add")
    return weights[torch.arange(heads, device=device) % draws]


def replace_merged(plan: WindowPlan, merged: MergedQueries, q: Tensor) -> Tensor:
    """In place of each query the one by which it reads the keys out of its box. (B, H, L, D)"""
    geometry = plan.geometry
    tokens = geometry.queries.view(merged.slots.shape[1:]).expand_as(merged.slots)  # (B, S, Q)
    read_as = tokens.gather(2, merged.kept).gather(2, merged.slots)  # (B, S, Q)
    numbers = read_as.flatten(1)[:, geometry.places]  # (B, N)
    replaced = q.clone()
    geometry.stream.take_picture(replaced).copy_(take_tokens(q, numbers))
    return replaced
