"""The plans of one layer in one model call.

What they draw depends on seed, step and layer only, not on the batch. Merge plans are made anew, or
shared by the layers of one resolution for some steps.
"""

from __future__ import annotations

from collections.abc import Hashable

from torch import Tensor

from ...tome_core.downsample import DownsamplePlan
from ...tome_core.grid import TokenGrid
from ...tome_core.interleaving import Deal, InterleavedPlan
from ...tome_core.matchers import plan_downsample, plan_merge
from ...tome_core.partition import seeded_generator
from ...tome_core.plan import MergePlan
from ...tome_core.settings import DownsampleSettings, MergeSettings
from ...tome_core.tile_plan import TilePlan
from .run_state import ModelCall


def merge_plan_of(
    settings: MergeSettings,
    call: ModelCall,
    layer: tuple[int | str, ...],
    grid: TokenGrid,
    metric: Tensor,
    images: tuple[Hashable, ...],
) -> MergePlan | TilePlan:
    """Made anew, or the one that the layers of this resolution share for some steps.

    layer: what names it. metric: (B, N, C) tokens that are compared. images: which prompts the
    batch holds.
    """
    if not settings.refresh_steps:
        generator = seeded_generator(settings.seed, call.step, *layer)
        return plan_merge(metric, grid, settings, generator)
    age = call.step // settings.refresh_steps
    name = (settings, grid, images, metric.shape[0], metric.device)
    made, plan = call.run.plans.get(name, (None, None))
    if plan is None or made != age:
        generator = seeded_generator(settings.seed, age, str(grid))
        plan = plan_merge(metric, grid, settings, generator)
        call.run.plans[name] = (age, plan)
    return plan


def downsample_plan_of(
    settings: DownsampleSettings,
    call: ModelCall,
    layer: tuple[int | str, ...],
    grid: TokenGrid,
    factor: float,
    others: int = 0,
) -> DownsamplePlan | InterleavedPlan:
    """Made anew. layer: what names it. factor, others: as ``plan_downsample`` takes them."""
    generator = seeded_generator(settings.seed, call.step, *layer)
    return plan_downsample(grid, settings, factor, generator, others)


def deal_of(call: ModelCall, layer: tuple[int | str, ...], queries: int, groups: int) -> Deal:
    """So many queries dealt to so many groups. layer: what names it."""
    return Deal.draw(queries, groups, seeded_generator("deal", call.step, *layer))
