"""From settings to the plan of one layer whose similar tokens are merged."""

from __future__ import annotations

import math
from dataclasses import replace

from torch import Tensor

from ..downsampling import ChoosingPlan, choose_for_groups
from ..draws import Draws
from ..grid import TokenGrid
from ..layer import Layer
from ..plan import Skipped
from ..windows import WindowPlan, cut_strips, merge_queries, plan_windows
from .destinations import (
    Destinations,
    choose_every_kth,
    choose_random,
    choose_strided,
    fit_strides,
)
from .global_matching import match_global
from .local_matching import match_local
from .plan import SlotPlan
from .settings import MergeSettings

LEAST_TOKENS = 32
LEAST_SHARE = 1 / 8
"""Below these, planning and copying cost more than shorter attention saves (one
attention layer on 2 CPU cores with ComfyUI's default attention there: 0.5 of 16 tokens 0.97x, of
64 tokens 1.28x; 0.1 of 64 to 4096 tokens 0.93x to 1.05x)."""


def plan_merging(
    settings: MergeSettings, layer: Layer, draws: Draws, metric: Tensor
) -> SlotPlan | WindowPlan | Skipped:
    """The plan of the queries in a layer that ``explain_unreduced`` says nothing of.

    metric: (B, N, C) tokens of the picture that are compared.
    """
    if loss := explain_few_merged(settings, layer.stream.grid):
        return Skipped(loss)
    if layer.local_window and (plan := merge_in_windows(settings, layer, draws, metric)):
        return plan
    return merge_picture(settings, layer, draws, metric)


def explain_few_merged(settings: MergeSettings, grid: TokenGrid) -> str:
    """Why merging does not pay on any device, empty where it does."""
    merged = grid.tokens - count_kept(settings, grid)
    if grid.tokens < LEAST_TOKENS:
        return f"{grid.tokens} tokens are too few for merging to pay"
    if merged < LEAST_SHARE * grid.tokens:
        return f"merging {merged} of {grid.tokens} tokens costs more than it saves"
    return ""


def count_kept(settings: MergeSettings, grid: TokenGrid) -> int:
    """Tokens that the ratio leaves, or ``max_tokens`` where that is less; at least one."""
    kept = grid.tokens - int(grid.tokens * settings.acting_ratio)
    return max(1, min(kept, settings.max_tokens or kept))


def merge_picture(
    settings: MergeSettings, layer: Layer, draws: Draws, metric: Tensor
) -> SlotPlan | Skipped:
    """The plan that merges as many tokens as ``settings`` ask for.

    Where queries may be split into groups, up to three more are merged, so that all groups have as
    many: blocks of slots then are groups as they are, and nothing is copied. But every dst stays.
    """
    grid = layer.stream.grid
    kept = count_kept(settings, grid)
    dst = choose_destinations(settings, grid, kept, draws.per_step)
    if isinstance(dst, Skipped):
        return dst
    if not settings.merges_keys:
        kept = max(kept - kept % layer.most_groups, dst.count)
    match = match_local if settings.matching == "local" else match_global
    plan = match(metric, grid, dst, grid.tokens - kept)
    return plan.extend(layer.stream) if layer.stream.others else plan


def merge_in_windows(
    settings: MergeSettings, layer: Layer, draws: Draws, metric: Tensor
) -> WindowPlan | Skipped | None:
    """The plan that keeps all keys near a query, and merges queries for the keys beyond.

    None where there is no window.
    """
    grid = layer.stream.grid
    # Every dst stays, also where ``max_tokens`` asks for fewer queries.
    share = max(count_kept(settings, grid) / grid.tokens, 1 - settings.most_ratio)
    smaller = shrink_by_strides(settings, grid, grid.tokens)
    plan = plan_windows(settings, layer, smaller, draws, share)
    if not isinstance(plan, WindowPlan):
        return plan
    strips = cut_strips(
        plan.geometry.axes,
        (settings.stride_y, settings.stride_x),
        1 - share,
        draws.per_step if settings.random_destinations else None,
        layer.device,
    )
    return replace(plan, merged=merge_queries(metric, strips)) if strips else plan


def choose_destinations(
    settings: MergeSettings, grid: TokenGrid, kept: int, draws: Draws
) -> Destinations | Skipped:
    """The dst tokens, at most ``kept`` or one a frame."""
    if settings.matching == "random":
        return choose_random(grid.tokens, kept, draws)
    stride_y, stride_x = settings.stride_y, settings.stride_x
    if settings.matching == "k-th":
        if stride_y * stride_x > grid.tokens:
            return Skipped(f"grid {grid} has fewer tokens than one {stride_y}x{stride_x} cell")
        k = max(stride_y * stride_x, math.ceil(grid.tokens / kept))
        return choose_every_kth(grid.tokens, k, draws.device)
    if stride_y > grid.height or stride_x > grid.width:
        return Skipped(f"grid {grid} is smaller than one {stride_y}x{stride_x} cell")
    strides = fit_strides(grid, stride_y, stride_x, kept)
    return choose_strided(
        grid, *strides, draws if settings.random_destinations else None, draws.device
    )


def downsample_keys(settings: MergeSettings, layer: Layer, draws: Draws) -> ChoosingPlan:
    """The plan of keys and values that are not merged: one key of each stride_y x stride_x cell,
    drawn for each query group.
    """
    grid = layer.stream.grid
    smaller = shrink_by_strides(settings, grid, settings.max_tokens or grid.tokens)
    return choose_for_groups(layer.stream, smaller, draws, layer.most_groups)


def shrink_by_strides(settings: MergeSettings, grid: TokenGrid, most: int) -> TokenGrid:
    """The grid with one key of each cell, at most ``most`` keys."""
    y, x = fit_strides(grid, settings.stride_y, settings.stride_x, most)
    return TokenGrid(grid.height // y, grid.width // x, grid.frames)
