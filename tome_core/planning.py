"""From settings to the plan of one layer, or the reason why the layer is skipped."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import singledispatch

from .cells import pick_nearest
from .downsample import ChoosingPlan, InterpolationPlan
from .downsample_settings import DRAWN, DownsampleSettings
from .grid import TokenGrid
from .layer_size import LayerSize
from .layer_tokens import LayerTokens
from .merge_planning import downsample_keys, plan_merging, plan_merging_in_windows
from .merge_settings import MergeSettings
from .plan import Plan, Skipped
from .query_groups import MOST_GROUPS, choose_for_groups
from .settings import Part, Settings
from .window_plan import WindowPlan
from .window_planning import plan_windows

AnyPlan = Plan | WindowPlan
Plans = dict[Part, AnyPlan]


def plan_parts(settings: Settings, layer: LayerTokens, parts: Iterable[Part]) -> Plans | Skipped:
    """The plan of each part that ``settings`` reduce in one layer."""
    plan = plan_layer(settings, layer)
    if isinstance(plan, Skipped):
        return plan
    plans: Plans = dict.fromkeys(parts, plan)
    if "keys and values" in plans:
        plans["keys and values"] = _plan_keys(settings, layer, plan)
    return plans


@singledispatch
def explain_whole(settings: Settings, size: LayerSize) -> str:
    """Why ``settings`` leave a layer of this size whole; empty where its tokens decide."""
    raise TypeError(f"settings are {type(settings).__name__}, expected those of a node")


@singledispatch
def plan_layer(settings: Settings, layer: LayerTokens) -> AnyPlan | Skipped:
    """The plan that ``settings`` ask for in one layer; of merging, that of the queries."""
    raise TypeError(f"settings are {type(settings).__name__}, expected those of a node")


@singledispatch
def _plan_keys(settings: Settings, layer: LayerTokens, plan: AnyPlan) -> AnyPlan:
    """The plan of keys and values beside ``plan``: mostly the same one."""
    return plan


@explain_whole.register
def _explain_no_merging(settings: MergeSettings, size: LayerSize) -> str:
    return size.explain_loss("merging")


@plan_layer.register
def _plan_merging(settings: MergeSettings, layer: LayerTokens) -> AnyPlan | Skipped:
    if reason := explain_whole(settings, layer.size):
        return Skipped(reason)
    if layer.local_window and (plan := plan_merging_in_windows(settings, layer)):
        return plan
    return plan_merging(settings, layer)


@_plan_keys.register
def _plan_keys_of_merging(settings: MergeSettings, layer: LayerTokens, plan: AnyPlan) -> AnyPlan:
    if plan.window or not settings.downsamples_keys:
        return plan
    return downsample_keys(settings, layer)


@explain_whole.register
def _explain_no_downsampling(settings: DownsampleSettings, size: LayerSize) -> str:
    return _explain_all_kept(settings, size, _shrink(settings, size))


def _explain_all_kept(settings: DownsampleSettings, size: LayerSize, smaller: TokenGrid) -> str:
    """As ``explain_whole``. smaller: the grid that ``settings`` ask for."""
    grid = size.stream.grid
    if smaller == grid:
        return f"{grid.tokens} tokens are within the factor and max_tokens already"
    loss = size.explain_loss("downsampling")
    if loss and not settings.local_window:
        return f"{loss}; with a size as local_window they are reduced"
    return ""


@plan_layer.register
def _plan_downsampling(settings: DownsampleSettings, layer: LayerTokens) -> AnyPlan | Skipped:
    size = layer.size
    smaller = _shrink(settings, size)
    if reason := _explain_all_kept(settings, size, smaller):
        return Skipped(reason)
    stream, draws = layer.stream, layer.draws
    if layer.local_window and (
        plan := plan_windows(
            settings, stream, smaller, layer.local_window, draws, by_number=layer.by_number
        )
    ):
        return plan
    if settings.method in DRAWN:
        most_groups = MOST_GROUPS if settings.groups_queries else 1
        return choose_for_groups(stream, smaller, draws, most_groups)
    centred = settings.method != "nearest"
    nearest = pick_nearest(stream.grid, smaller, draws.device, centred=centred)[None]
    if settings.method in ("nearest-exact", "nearest"):
        return ChoosingPlan(stream, smaller, nearest)
    return InterpolationPlan(stream, smaller, nearest, settings.method)


def _shrink(settings: DownsampleSettings, size: LayerSize) -> TokenGrid:
    """The grid that the factors leave, or a smaller one where ``max_tokens`` asks for it."""
    grid, temporal_factor = size.stream.grid, settings.temporal_factor
    factor = settings.find_factor(size.downsample, size.resolutions)
    if settings.max_tokens:
        most = grid.downsample(1.0, temporal_factor).tokens
        factor = max(factor, math.sqrt(most / settings.max_tokens))
    return grid.downsample(factor, temporal_factor)
