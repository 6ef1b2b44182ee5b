"""What is merged and downsampled in one call of one transformer block."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from torch import Tensor

from ...tome_core.downsample import DownsamplePlan
from ...tome_core.grid import TokenGrid
from ...tome_core.matchers import plan_downsample, why_merging_cannot_pay
from ...tome_core.plan import MergePlan
from ...tome_core.settings import MergeSettings
from ...tome_core.tile_plan import TilePlan
from .merge_plans import merge_plan_of
from .run_state import UNetCall
from .unet_layers import SelfAttentionLayer

AnyPlan = MergePlan | TilePlan | DownsamplePlan


@dataclass(frozen=True)
class BlockPlans:
    """One plan per sequence of tokens that is reduced; the same object where they share one."""

    queries: MergePlan | TilePlan | None = None
    keys_and_values: AnyPlan | None = None
    cross_attention: MergePlan | TilePlan | None = None
    mlp: MergePlan | TilePlan | None = None
    proportional: bool = False

    @property
    def key_sizes(self) -> Tensor | None:
        """Tokens that each key stands for, (B, Mk), None where attention need not know.

        Downsampled keys all stand for as many, and the slots of soft weights for no number.
        """
        plan = self.keys_and_values
        if self.proportional and isinstance(plan, MergePlan):
            return plan.sizes.float()
        return None

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
    call: UNetCall,
    layer: SelfAttentionLayer,
    grid: TokenGrid,
    metric: Tensor,
    images: tuple[Hashable, ...],
) -> BlockPlans:
    """Plans for the settings that act on ``layer`` in this call.

    metric: (B, N, C) tokens that are compared. images: which prompts the batch holds.
    Raises ValueError, whose message is the reason, where none can, or could only at a loss.
    """
    plans: dict[str, AnyPlan] = {}
    proportional = False
    reasons: list[str] = []
    for settings, roles in call.roles_by_settings(layer.downsample).items():
        if grid.tokens < settings.min_tokens:
            reasons.append(f"{grid.tokens} tokens are fewer than min_tokens")
            continue
        plan: AnyPlan
        if isinstance(settings, MergeSettings):
            reason = why_merging_cannot_pay(grid, settings)
            if reason:
                reasons.append(reason)
                continue
            plan = merge_plan_of(settings, call, layer.key, grid, metric, images)
        else:
            factor = call.reduction.factor(settings, layer.downsample)
            plan = plan_downsample(grid, settings, factor)
            if plan.smaller == grid:
                reasons.append(f"{grid.tokens} tokens are within the factor and the budget already")
                continue
        plans.update(dict.fromkeys(roles, plan))
        if "keys_and_values" in roles:
            proportional = settings.proportional_attention
    if not plans:
        raise ValueError(" and ".join(reasons))
    return BlockPlans(**plans, proportional=proportional)  # type: ignore[arg-type]  # composition.py gives roles by kind
