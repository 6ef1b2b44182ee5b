"""From settings to a plan for one layer: the methods behind one interface."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .downsample import DownsamplePlan
from .grid import TokenGrid
from .interleaving import MOST_GROUPS, InterleavedPlan
from .local_matching import match_local
from .matching import match_global
from .partition import Partition, kth_partition, random_partition, strided_destinations
from .plan import MergePlan
from .settings import DownsampleSettings, MergeSettings, Settings
from .tile_plan import TilePlan, match_tiles

LEAST_TOKENS = 32
LEAST_SHARE = 1 / 8
"""Below these, planning and copying cost more than shorter attention saves (one
attention layer on 2 CPU cores with ComfyUI's default attention there: 0.5 of 16 tokens 0.97x, of
64 tokens 1.28x; 0.1 of 64 to 4096 tokens 0.93x to 1.05x)."""


def plan_merge(
    metric: Tensor, grid: TokenGrid, settings: MergeSettings, generator: torch.Generator
) -> MergePlan | TilePlan:
    """The merge plan of a layer whose tokens are ``metric``, (B, N, C).

    generator: a CPU generator of the caller's; draws random destinations.
    Raises ValueError where the grid is smaller than one cell of the stride.
    """
    kept = kept_tokens(grid, settings)
    merged = grid.tokens - kept
    if settings.matching == "toma":
        return match_tiles(metric, grid, kept)
    if settings.matching == "random":
        partition = random_partition(grid.tokens, merged, generator)
        return match_global(metric, partition.to(metric.device), merged)
    if settings.matching == "k-th":
        k = max(settings.stride_y * settings.stride_x, math.ceil(grid.tokens / kept))
        return match_global(metric, kth_partition(grid.tokens, k).to(metric.device), merged)

    stride_y, stride_x = _strides_for(grid, settings, kept)
    draw = generator if settings.random_destinations else None
    dst = strided_destinations(grid, stride_y, stride_x, draw)
    if settings.matching == "global":
        partition = Partition.of_destinations(dst.flatten(), grid.tokens)
        return match_global(metric, partition.to(metric.device), merged)
    dst = dst.to(metric.device, non_blocking=True)
    return match_local(metric, grid, dst, stride_y, stride_x, merged)


def plan_downsample(
    grid: TokenGrid,
    settings: DownsampleSettings,
    factor: float,
    generator: torch.Generator,
    others: int = 0,
) -> DownsamplePlan | InterleavedPlan:
    """The plan of a layer that ``settings`` give ``factor``.

    generator: a CPU generator of the caller's; draws the tokens of "stratified" and "interleaved".
    others: tokens of the sequence that every group of queries reads besides the picture's.
    """
    smaller = smaller_grid(grid, settings, factor)
    # They must not read more keys in all than there are.
    groups = min(MOST_GROUPS, (grid.tokens + others) // (smaller.tokens + others))
    if settings.method == "interleaved" and groups > 1:
        return InterleavedPlan.draw(grid, smaller, groups, generator)
    return DownsamplePlan.of(grid, smaller, settings.method, generator)


def smaller_grid(grid: TokenGrid, settings: DownsampleSettings, factor: float) -> TokenGrid:
    """The grid that ``factor`` leaves, a larger one where the budget asks."""
    temporal_factor = settings.temporal_factor
    if settings.max_tokens:
        frames = grid.downsampled(1.0, temporal_factor).tokens
        factor = max(factor, math.sqrt(frames / settings.max_tokens))
    return grid.downsampled(factor, temporal_factor)


def kept_tokens(grid: TokenGrid, settings: MergeSettings) -> int:
    """Tokens that the ratio leaves, or the budget where that is less; at least one."""
    kept = grid.tokens - int(grid.tokens * settings.ratio)
    return max(1, min(kept, settings.max_tokens or kept))


def why_merging_cannot_pay(grid: TokenGrid, settings: MergeSettings) -> str | None:
    """Why merging as ``settings`` say would slow a layer down, None where it can pay."""
    if grid.tokens < LEAST_TOKENS:
        return f"{grid.tokens} tokens are too few for merging to pay"
    merged = grid.tokens - kept_tokens(grid, settings)
    if merged < LEAST_SHARE * grid.tokens:
        return f"merging {merged} of {grid.tokens} tokens costs more than it saves"
    return None


def why_left_alone(grid: TokenGrid, settings: Settings, factor: float) -> str | None:
    """Why ``settings`` leave a layer of this grid whole, None where they reduce it.

    factor: what downsampling settings give to the layer.
    """
    if grid.tokens < settings.min_tokens:
        return f"{grid.tokens} tokens are fewer than min_tokens"
    if isinstance(settings, MergeSettings):
        return why_merging_cannot_pay(grid, settings)
    if smaller_grid(grid, settings, factor) == grid:
        return f"{grid.tokens} tokens are within the factor and the budget already"
    return None


def _strides_for(grid: TokenGrid, settings: MergeSettings, kept: int) -> tuple[int, int]:
    """The strides, both times the smallest whole number that leaves at most ``kept`` cells.

    Only a budget asks for more than the strides themselves. A cell stays within the grid.
    """
    stride_y, stride_x = settings.stride_y, settings.stride_x
    if stride_y > grid.height or stride_x > grid.width:
        raise ValueError(f"grid {grid} is smaller than one {stride_y}x{stride_x} cell")
    for times in range(1, max(grid.height, grid.width) + 1):
        y, x = min(stride_y * times, grid.height), min(stride_x * times, grid.width)
        if grid.frames * (grid.height // y) * (grid.width // x) <= kept:
            break
    return y, x
