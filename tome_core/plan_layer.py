"""From settings to the plan of one layer: what is reduced in it, and the way back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from . import downsampling, merging
from .downsampling import DownsampleSettings, QueryGroups, cut_groups, draw_groups
from .draws import Draws
from .layer import Layer
from .merging import MergeSettings, SlotPlan
from .plan import Plan, Skipped
from .settings import Settings, Target
from .windows import WindowPlan

Plans = dict[Target, Any]
"""Each is a ``Plan``, and that of queries a ``SlotPlan``; a ``WindowPlan`` is of queries and
keys."""


def plan_layer(
    settings: Settings, targets: Iterable[Target], layer: Layer, draws: Draws, tokens: Tensor
) -> Plans | Skipped:
    """The plan of each target that ``settings`` reduce in one layer, mostly the same one.

    Args:
        targets: what ``Settings.find_targets`` gives for the layer.
        draws: of this layer in this run; their index is the step's.
        tokens: what is compared of them, (B, L, C) or (B, H, L, D). The mean over heads counts.
    """
    if reason := explain_unreduced(settings, layer):
        return Skipped(reason)
    if isinstance(settings, DownsampleSettings):
        plan = downsampling.plan_downsampling(settings, layer, draws)
        return plan if isinstance(plan, Skipped) else dict.fromkeys(targets, plan)
    assert isinstance(settings, MergeSettings)
    picture = layer.stream.take_picture(tokens)
    metric = picture.mean(dim=1) if picture.ndim == 4 else picture  # (B, N, C)
    merged = merging.plan_merging(settings, layer, draws, metric)
    if isinstance(merged, Skipped):
        return merged
    plans: Plans = dict.fromkeys(targets, merged)
    if (
        settings.downsamples_keys
        and "keys and values" in plans
        and not isinstance(merged, WindowPlan)
    ):
        plans["keys and values"] = merging.downsample_keys(settings, layer, draws)
    return plans


def explain_unreduced(settings: Settings, layer: Layer) -> str:
    """Why ``settings`` reduce nothing in a layer of this size; empty where its tokens decide."""
    if isinstance(settings, DownsampleSettings):
        return downsampling.explain_unreduced(settings, layer)
    assert isinstance(settings, MergeSettings)
    return "" if settings.reduce_small_layers else layer.why_no_gain("merging")


Inputs = tuple[Tensor, Tensor, Tensor]
"""These are the queries, keys and values of attention."""


@dataclass(frozen=True)
class LayerPlan:
    """None for what is not reduced. The same plan mostly serves several targets.

    Args:
        queries, keys: plans of self-attention; ``keys`` is also that of the values.
        sizes: tokens that each key stands for, None where attention need not know.
        groups: of the queries that remain, None where all of them read the same keys.
        window: keys that are exact near each query, in place of ``queries`` and ``keys``.
        cross_attention, mlp: plans of the queries and of the tokens there.
    """

    queries: SlotPlan | None = None
    keys: Plan | None = None
    sizes: Tensor | None = None
    groups: QueryGroups | None = None
    window: WindowPlan | None = None
    cross_attention: SlotPlan | None = None
    mlp: SlotPlan | None = None

    def reduce_inputs(self, x: Tensor, context: Tensor, value: Tensor) -> Inputs:
        """What the projections of a layer get; each tensor is reduced once. Each (B, N, C).

        Returns the inputs of the queries (B or B·G, Nq, C), keys and values (B or B·G, Nk, C).
        """
        queries = self.queries.merge(x) if self.queries else x
        if self.keys:
            same = value is x and self.keys is self.queries
            values = queries if same else self.keys.merge(value)
            if self.sizes is not None:
                # Not a mean: it is less like any of its tokens, so attention to it is flatter.
                context = self.keys.choose(context)
            else:
                context = values if context is value else self.keys.merge(context)
            value = values
        return self.groups.split(queries) if self.groups else queries, context, value

    def reduce_heads(self, q: Tensor, k: Tensor, v: Tensor) -> Inputs:
        """The same where projections are done. Queries and keys carry positions (RoPE) there: the
        mean of two would stand for no position, so they are chosen. Each (B, H, N, D).
        """
        if self.queries:
            q = self.queries.choose(q)
        if self.keys:
            k, v = self.keys.choose(k), self.keys.merge(v)
        return self.groups.split(q) if self.groups else q, k, v

    def restore(self, out: Tensor) -> Tensor:
        """The output of attention for every token. (B·G, ..., Q, C) -> (B, ..., N, C)."""
        if self.groups:
            out = self.groups.join(out)
        return self.queries.unmerge(out) if self.queries else out


def join_plans(plans: Plans, layer: Layer, weighed: bool, seed: int) -> LayerPlan:
    """One plan of those that several settings made of different targets of a layer.

    weighed: keys count as many tokens as they stand for. seed: of the settings that reduce keys.
    """
    queries, keys = plans.get("queries"), plans.get("keys and values")
    cross_attention, mlp = plans.get("queries of cross-attention"), plans.get("tokens of the MLP")
    if isinstance(keys, WindowPlan):
        return LayerPlan(window=keys, cross_attention=cross_attention, mlp=mlp)
    return LayerPlan(
        queries=queries,
        keys=keys,
        sizes=keys.sizes if keys and weighed else None,
        groups=_make_groups(queries, keys, layer, seed),
        cross_attention=cross_attention,
        mlp=mlp,
    )


def _make_groups(
    queries: SlotPlan | None, keys: Plan | None, layer: Layer, seed: int
) -> QueryGroups | None:
    """The groups of the queries that remain, None where all of them read the same keys."""
    if not keys or keys.groups == 1:
        return None
    stream, device = layer.stream, layer.device
    if queries:
        return cut_groups(queries.queries_kept, keys.groups, device, stream.before, stream.after)
    draws = Draws((seed, "groups"), device)
    return draw_groups(stream.length, keys.groups, draws, stream.before, stream.after)
