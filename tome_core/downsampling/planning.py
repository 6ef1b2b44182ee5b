"""From settings to the plan of one layer whose keys and values are downsampled."""

from __future__ import annotations

import math

import torch

from ..cells import pick_nearest
from ..constants import constant
from ..draws import Draws
from ..grid import Stream, TokenGrid
from ..layer import MOST_GROUPS, Layer
from ..plan import Plan, Skipped
from ..windows import WindowPlan, plan_windows
from .plan import ChoosingPlan, InterpolationPlan
from .query_groups import choose_for_groups
from .settings import DRAWN, DownsampleMethod, DownsampleSettings


def plan_downsampling(
    settings: DownsampleSettings, layer: Layer, draws: Draws
) -> Plan | WindowPlan | Skipped:
    """The plan of keys and values in a layer that ``explain_unreduced`` says nothing of."""
    stream, smaller = layer.stream, shrink_by_factor(settings, layer)
    if layer.local_window and (plan := plan_windows(settings, layer, smaller, draws)):
        return plan
    if settings.method in DRAWN:
        most_groups = MOST_GROUPS if settings.groups_queries else 1
        return choose_for_groups(stream, smaller, draws, most_groups)
    return _plan_resampling(stream, smaller, layer.device, settings.method)


@constant
def _plan_resampling(
    stream: Stream, smaller: TokenGrid, device: torch.device, method: DownsampleMethod
) -> ChoosingPlan:
    centred = method != "nearest"
    nearest = pick_nearest(stream.grid, smaller, device, centred=centred)[None]
    chosen = stream.extend_numbers(nearest, stream.length)
    if method in ("nearest-exact", "nearest"):
        return ChoosingPlan(stream, smaller, chosen)
    return InterpolationPlan(stream, smaller, chosen, method)


def explain_unreduced(settings: DownsampleSettings, layer: Layer) -> str:
    """Why a layer keeps all its keys and values, empty where it does not."""
    grid = layer.stream.grid
    if shrink_by_factor(settings, layer) == grid:
        return f"{grid.tokens} tokens are within the factor and max_tokens already"
    if settings.find_local_window(of_model=0) or settings.reduce_small_layers:
        return ""
    return layer.why_no_gain("downsampling")


def shrink_by_factor(settings: DownsampleSettings, layer: Layer) -> TokenGrid:
    """The grid that the factors leave, or a smaller one where ``max_tokens`` asks for it."""
    grid, temporal_factor = layer.stream.grid, settings.temporal_factor
    factor = settings.find_factor(layer.downsample, layer.resolutions)
    if settings.max_tokens:
        most, all_keys = settings.max_tokens, grid.downsample(1.0, temporal_factor)
        # The second one counts where the shorter side becomes a single token.
        longer = all_keys.frames * max(grid.height, grid.width)
        factor = max(factor, math.sqrt(all_keys.tokens / most), longer / most)
    return grid.downsample(factor, temporal_factor)
