"""From settings to the plan of one layer whose similar tokens are merged."""

from __future__ import annotations

import math
from dataclasses import replace

from .downsample import ChoosingPlan
from .draws import Draws
from .global_matching import match_global
from .grid import TokenGrid
from .layer_tokens import LayerTokens
from .merge_settings import MergeSettings
from .merged_queries import cut_strips
from .partition import Destinations, choose_every_kth, choose_random, choose_strided, fit_strides
from .plan import MergingPlan, Skipped
from .query_groups import choose_for_groups
from .tile_matching import match_tiles
from .window_plan import WindowPlan, number_queries
from .window_planning import plan_windows

LEAST_TOKENS = 32
LEAST_SHARE = 1 / 8
"""Below these, planning and copying cost more than shorter attention saves (one
attention layer on 2 CPU cores with ComfyUI's default attention there: 0.5 of 16 tokens 0.97x, of
64 tokens 1.28x; 0.1 of 64 to 4096 tokens 0.93x to 1.05x)."""


def plan_merging(settings: MergeSettings, layer: LayerTokens) -> MergingPlan | Skipped:
    """The plan that merges as many tokens as ``settings`` ask for.

    Where queries may be split into groups, up to three more are merged, so that all groups have as
    many: blocks of slots then are groups as they are, and nothing is copied.
    """
    grid, draws = layer.stream.grid, layer.draws
    kept = _count_kept(grid, settings)
    if loss := _explain_loss(grid, grid.tokens - kept):
        return Skipped(loss)
    if not settings.merges_keys and kept > layer.most_groups:
        kept -= kept % layer.most_groups
    merged = grid.tokens - kept
    if settings.matching == "toma":
        return match_tiles(layer.find_metric(), grid, None, merged)
    dst = _choose_destinations(settings, grid, kept, draws.anew)
    if isinstance(dst, Skipped):
        return dst
    match = layer.match_local if settings.matching == "local" else match_global
    return match(layer.find_metric(), grid, dst, merged).extend(layer.stream)


def plan_merging_in_windows(
    settings: MergeSettings, layer: LayerTokens
) -> WindowPlan | Skipped | None:
    """The plan that keeps all keys near a query, and merges queries for the keys beyond.

    None where there is no window.
    """
    stream, draws = layer.stream, layer.draws
    grid = stream.grid
    kept = _count_kept(grid, settings)
    if loss := _explain_loss(grid, grid.tokens - kept):
        return Skipped(loss)
    plan = plan_windows(
        settings,
        stream,
        _shrink(settings, grid, grid.tokens),
        layer.local_window,
        draws,
        by_number=layer.by_number,
        left=kept / grid.tokens,
    )
    if not isinstance(plan, WindowPlan):
        return plan
    strips = cut_strips(
        plan.axes,
        number_queries(plan.axes, 0, plan.device)[0],
        (settings.stride_y, settings.stride_x),
        1 - kept / grid.tokens,
        draws.anew if settings.random_destinations else None,
    )
    if strips is None:
        return plan
    return replace(plan, merged=layer.merge_queries(layer.find_metric(), strips))


def _explain_loss(grid: TokenGrid, merged: int) -> str:
    """Why merging does not pay, empty where it does."""
    if grid.tokens < LEAST_TOKENS:
        return f"{grid.tokens} tokens are too few for merging to pay"
    if merged < LEAST_SHARE * grid.tokens:
        return f"merging {merged} of {grid.tokens} tokens costs more than it saves"
    return ""


def _count_kept(grid: TokenGrid, settings: MergeSettings) -> int:
    """Tokens that the ratio leaves, or ``max_tokens`` where that is less; at least one."""
    kept = grid.tokens - int(grid.tokens * settings.acting_ratio)
    return max(1, min(kept, settings.max_tokens or kept))


def _choose_destinations(
    settings: MergeSettings, grid: TokenGrid, kept: int, draws: Draws
) -> Destinations | Skipped:
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


def downsample_keys(settings: MergeSettings, layer: LayerTokens) -> ChoosingPlan:
    """One key of each stride_y x stride_x cell, drawn for each query group."""
    grid = layer.stream.grid
    smaller = _shrink(settings, grid, settings.max_tokens or grid.tokens)
    return choose_for_groups(layer.stream, smaller, layer.draws, layer.most_groups)


def _shrink(settings: MergeSettings, grid: TokenGrid, most: int) -> TokenGrid:
    """The grid with one key of each cell, at most ``most`` keys."""
    y, x = fit_strides(grid, settings.stride_y, settings.stride_x, most)
    return TokenGrid(grid.height // y, grid.width // x, grid.frames)
