"""Merge plans made anew, or shared by the layers of one resolution for some steps."""

from __future__ import annotations

from collections.abc import Hashable

from torch import Tensor

from ...tome_core.grid import TokenGrid
from ...tome_core.matchers import plan_merge
from ...tome_core.partition import seeded_generator
from ...tome_core.plan import MergePlan
from ...tome_core.settings import MergeSettings
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
    batch holds. Destinations depend on seed, step and layer only, not on the batch.
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
