"""From settings to the plan of one layer, or the reason why the layer is skipped."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

from torch import Tensor

from .cells import list_cells, pick_nearest
from .downsample import ChoosingPlan, InterpolationPlan
from .downsample_settings import DRAWN, DownsampleSettings
from .draws import Draws
from .global_matching import match_global
from .grid import TokenGrid
from .local_matching import match_local
from .merge_settings import MergeSettings
from .partition import Destinations, choose_every_kth, choose_random, choose_strided, fit_strides
from .plan import MergingPlan, Plan, Skipped
from .query_groups import MOST_GROUPS
from .settings import Settings
from .streams import Stream
from .tile_matching import match_tiles
from .window_plan import WindowPlan
from .window_planning import plan_windows

LEAST_FOR_MERGING = {"cuda": 1024}
"""By device: with fewer tokens merging gains nothing by the same estimates, even where launches
hide. Token Downsample starts few kernels and has no such limit."""

LEAST_TOKENS = 32
LEAST_SHARE = 1 / 8
"""Below these, planning and copying cost more than shorter attention saves (one
attention layer on 2 CPU cores with ComfyUI's default attention there: 0.5 of 16 tokens 0.97x, of
64 tokens 1.28x; 0.1 of 64 to 4096 tokens 0.93x to 1.05x)."""


@dataclass(frozen=True)
class LayerTokens:
    """The tokens of one layer, as planning sees them.

    Args:
        stream: the sequence that the layer's attention reads.
        find_metric: gives (B, N, C), the picture's tokens that are compared; called only where
            tokens are compared.
        draws: of this layer in this run, on the device of its tensors; their turn is the step's.
        downsample, resolutions: see ``Settings.find_parts``.
        local_window: side of the box of exact keys around each tile of queries, 0: none.
    """

    stream: Stream
    find_metric: Callable[[], Tensor]
    draws: Draws
    downsample: int = 1
    resolutions: tuple[int, ...] = (1,)
    local_window: int = 0


@singledispatch
def plan_layer(settings: Settings, layer: LayerTokens) -> Plan | WindowPlan | Skipped:
    """The plan that ``settings`` ask for in one layer."""
    raise TypeError(f"settings are {type(settings).__name__}, expected those of a node")


@plan_layer.register
def _plan_merging(settings: MergeSettings, layer: LayerTokens) -> MergingPlan | Skipped:
    grid = layer.stream.grid
    kept = _count_kept(grid, settings)
    merged = grid.tokens - kept
    if grid.tokens < LEAST_FOR_MERGING.get(layer.draws.device.type, LEAST_TOKENS):
        return Skipped(f"{grid.tokens} tokens are too few for merging to pay")
    if merged < LEAST_SHARE * grid.tokens:
        return Skipped(f"merging {merged} of {grid.tokens} tokens costs more than it saves")

    if settings.matching == "toma":
        return match_tiles(layer.find_metric(), grid, None, merged)
    dst = _choose_destinations(settings, grid, kept, layer.draws.anew)
    if isinstance(dst, Skipped):
        return dst
    match = match_local if settings.matching == "local" else match_global
    return match(layer.find_metric(), grid, dst, merged).extend(layer.stream)


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


@plan_layer.register
def _plan_downsampling(
    settings: DownsampleSettings, layer: LayerTokens
) -> Plan | WindowPlan | Skipped:
    stream, draws = layer.stream, layer.draws
    grid = stream.grid
    smaller = _shrink(grid, settings, settings.find_factor(layer.downsample, layer.resolutions))
    if smaller == grid:
        return Skipped(f"{grid.tokens} tokens are within the factor and max_tokens already")

    if layer.local_window and (
        plan := plan_windows(settings, stream, smaller, layer.local_window, draws)
    ):
        return plan
    if settings.method in DRAWN:
        groups = _count_groups(stream, smaller) if settings.groups_queries else 1
        kept = list_cells(grid, smaller, groups, draws.device).draw(draws)
        return ChoosingPlan(stream, smaller, kept)
    centred = settings.method != "nearest"
    nearest = pick_nearest(grid, smaller, draws.device, centred=centred)[None]
    if settings.method in ("nearest-exact", "nearest"):
        return ChoosingPlan(stream, smaller, nearest)
    return InterpolationPlan(stream, smaller, nearest, settings.method)


def _shrink(grid: TokenGrid, settings: DownsampleSettings, factor: float) -> TokenGrid:
    """The grid that ``factor`` leaves, or a smaller one where ``max_tokens`` asks for it."""
    temporal_factor = settings.temporal_factor
    if settings.max_tokens:
        most = grid.downsample(1.0, temporal_factor).tokens
        factor = max(factor, math.sqrt(most / settings.max_tokens))
    return grid.downsample(factor, temporal_factor)


def _count_groups(stream: Stream, smaller: TokenGrid) -> int:
    """Query groups that read no more keys in all than there are tokens."""
    return min(MOST_GROUPS, stream.length // (smaller.tokens + stream.others))
