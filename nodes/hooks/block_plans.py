"""What is merged and downsampled in one call of one transformer block."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

from torch import Tensor

from ...tome_core.downsample import DownsamplePlan
from ...tome_core.grid import TokenGrid
from ...tome_core.interleaving import Deal, InterleavedPlan
from ...tome_core.matchers import why_left_alone
from ...tome_core.plan import MergePlan
from ...tome_core.settings import MergeSettings
from ...tome_core.tile_plan import TilePlan
from .layer_plans import deal_of, downsample_plan_of, merge_plan_of
from .run_state import UNetCall
from .unet_layers import SelfAttentionLayer

AnyPlan = MergePlan | TilePlan | DownsamplePlan | InterleavedPlan


@dataclass(frozen=True)
class DealtQueries:
    """Queries, merged first where there is a plan for it, and then dealt to groups."""

    deal: Deal
    plan: MergePlan | TilePlan | None

    @property
    def slots(self) -> int:
        """Q, the length of the groups' sequences."""
        return self.deal.order.shape[1]

    def merge(self, x: Tensor) -> Tensor:
        """(B, N, C) -> (B·G, Q, C)."""
        return self.deal.split(self.plan.merge(x) if self.plan else x)

    def unmerge(self, y: Tensor) -> Tensor:
        """(B·G, Q, C) -> (B, N, C)."""
        joined = self.deal.join(y)
        return self.plan.unmerge(joined) if self.plan else joined


@dataclass(frozen=True)
class BlockPlans:
    """One plan per sequence of tokens that is reduced; the same object where they share one."""

    queries: MergePlan | TilePlan | DealtQueries | None = None
    keys_and_values: AnyPlan | None = None
    cross_attention: MergePlan | TilePlan | None = None
    mlp: MergePlan | TilePlan | None = None
    proportional: bool = False

    def queries_of(self, tokens: int) -> int:
        """How many queries a layer of so many tokens is left with, in all groups together."""
        if isinstance(self.queries, DealtQueries):
            return self.queries.deal.queries
        return self.queries.slots if self.queries else tokens

    def dealt(self, deal: Deal) -> BlockPlans:
        """With queries in the groups of ``deal``, as many as the keys have."""
        assert not isinstance(self.queries, DealtQueries)
        return replace(self, queries=DealtQueries(deal, self.queries))

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

        n, context, value: (B, N, C), often the same tensor. Of merged keys the destination stands
        for its slot: a mean is less like any of them, and attention to it is flatter.
        """
        queries = self.queries.merge(n) if self.queries else n  # (B or B·G, Mq, C)
        plan = self.keys_and_values
        if plan is None:
            return queries, context, value
        values = queries if value is n and plan is self.queries else plan.merge(value)
        if isinstance(plan, MergePlan):
            keys = plan.choose(context)  # (B, Mk, C)
        else:
            keys = values if context is value else plan.merge(context)  # (B or B·G, Mk, C)
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
        factor = call.reduction.factor(settings, layer.downsample)
        reason = why_left_alone(grid, settings, factor)
        if reason:
            reasons.append(reason)
            continue
        plan: AnyPlan
        if isinstance(settings, MergeSettings):
            plan = merge_plan_of(settings, call, layer.key, grid, metric, images)
        else:
            plan = downsample_plan_of(settings, call, layer.key, grid, factor)
        plans.update(dict.fromkeys(roles, plan))
        if "keys_and_values" in roles:
            proportional = settings.proportional_attention
    if not plans:
        raise ValueError(" and ".join(reasons))
    made = BlockPlans(**plans, proportional=proportional)  # type: ignore[arg-type]  # composition.py gives roles by kind
    if isinstance(made.keys_and_values, InterleavedPlan):
        groups = made.keys_and_values.groups
        return made.dealt(deal_of(call, layer.key, made.queries_of(grid.tokens), groups))
    return made
