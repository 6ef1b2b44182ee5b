"""What is merged and downsampled in one call of one transformer block."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ...tome_core.downsample import DownsamplePlan
from ...tome_core.grid import TokenGrid
from ...tome_core.matching import match_global
from ...tome_core.partition import seeded_generator, strided_partition
from ...tome_core.plan import MergePlan
from ...tome_core.settings import MergeSettings
from .run_state import ModelCall
from .unet_layers import SelfAttentionLayer


@dataclass(frozen=True)
class BlockPlans:
    """One plan per sequence of tokens that is reduced; the same object where they share one."""

    queries: MergePlan | None = None
    keys_and_values: MergePlan | DownsamplePlan | None = None
    cross_attention: MergePlan | None = None
    mlp: MergePlan | None = None

    def reduce(self, n: Tensor, context: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs of the query, key and value projections, each tensor reduced once.

        n, context, value: (B, N, C), often the same tensor.
        """
        queries = self.queries.merge(n) if self.queries else n  # (B, Mq, C)
        if self.keys_and_values is None:
            return queries, context, value
        if context is n and self.keys_and_values is self.queries:
            keys = queries
        else:
            keys = self.keys_and_values.merge(context)  # (B, Mk, C)
        values = keys if value is context else self.keys_and_values.merge(value)
        return queries, keys, values


def plan_block(
    call: ModelCall, layer: SelfAttentionLayer, grid: TokenGrid, metric: Tensor
) -> BlockPlans:
    """Plans for the settings that act on ``layer`` in this call.

    metric: (B, N, C) tokens that are compared.
    Raises ValueError where the grid is smaller than one cell of the stride.
    """
    plans: dict[str, MergePlan | DownsamplePlan] = {}
    for settings, roles in call.roles_by_settings(layer).items():
        plan: MergePlan | DownsamplePlan
        if isinstance(settings, MergeSettings):
            plan = _merge_plan(settings, call.step, layer, grid, metric)
        else:
            factor = call.reduction.factor(settings, layer.downsample)
            plan = DownsamplePlan(grid, factor, settings.method)
        plans.update(dict.fromkeys(roles, plan))
    return BlockPlans(**plans)  # type: ignore[arg-type]  # composition.py gives roles by kind


def _merge_plan(
    settings: MergeSettings,
    step: int,
    layer: SelfAttentionLayer,
    grid: TokenGrid,
    metric: Tensor,
) -> MergePlan:
    """Destinations depend on seed, step and layer only, not on the batch."""
    generator = (
        seeded_generator(settings.seed, step, *layer.key) if settings.random_destinations else None
    )
    partition = strided_partition(grid, settings.stride_y, settings.stride_x, generator)
    merged = int(grid.tokens * settings.ratio)
    return match_global(metric, partition.to(metric.device), merged)
