"""The plans of one layer in one model call: one loop over the active settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from ...tome_core.draws import Draws
from ...tome_core.layer_tokens import LayerTokens
from ...tome_core.plan import MergingPlan, Plan, Skipped
from ...tome_core.planning import Plans, plan_parts
from ...tome_core.query_groups import QueryGroups, cut_groups, draw_groups
from ...tome_core.settings import Part, Settings
from ...tome_core.streams import Stream
from ...tome_core.window_plan import WindowPlan
from . import kernel_choice, merging_choice
from .model_call import Acting, ModelCall, SharedPlans


class Layer(Protocol):
    """A layer or block of a model; its text is its name."""

    @property
    def key(self) -> tuple[int | str, ...]:
        """Names the layer within its model."""

    @property
    def downsample(self) -> int:
        """The latent's side over the side of the layer's grid."""

    @property
    def local_window(self) -> int:
        """Side of the local window where the user leaves it to the kind of model; 0: none."""

    @property
    def most_groups(self) -> int:
        """Most groups that merged queries are split into, each with keys of its own."""


@dataclass(frozen=True)
class LayerPlans:
    """What is reduced in one layer; None for what stays whole.

    The same plan object mostly serves several parts where one setting reduces them.

    Args:
        queries, keys: plans of self-attention; ``keys`` is also that of the values.
        sizes: tokens that each key stands for, None where attention need not know.
        groups: of the queries that remain, None where all of them read the same keys.
        window: keys that are exact near each query, in place of ``keys``.
        cross_attention, mlp: plans of the queries and of the tokens there.
    """

    queries: MergingPlan | None = None
    keys: Plan | None = None
    sizes: Tensor | None = None
    groups: QueryGroups | None = None
    window: WindowPlan | None = None
    cross_attention: MergingPlan | None = None
    mlp: MergingPlan | None = None

    def restore(self, out: Tensor) -> Tensor:
        """The output of attention for every token. (B·G, ..., Q, C) -> (B, ..., N, C)."""
        if self.groups:
            out = self.groups.join(out)
        return self.queries.unmerge(out) if self.queries else out


def plan_attention(
    call: ModelCall,
    acting: Acting,
    layer: Layer,
    stream: Stream,
    device: torch.device,
    find_metric: Callable[[], Tensor],
    no_window: str,
    channels: int,
) -> LayerPlans | None:
    """Plans for one layer in one call, None where nothing is reduced; both are reported.

    Args:
        acting: what ``ModelCall.find_acting`` gives for the layer.
        stream: the sequence that the layer's self-attention reads.
        device: where the plans are used.
        find_metric: gives (B, N, C), the picture's tokens that are compared.
        no_window: why the layer can have no local window, empty where it can.
        channels: of a token in attention.
    """
    report, length = call.run.report, stream.length
    lack = ""
    plans: dict[Part, Any] = {}
    sizes = None
    for settings, parts in acting.items():
        merges = any("queries" in acting[each] for each in acting if each is not settings)
        left_out = "Token Merge reduces its queries" if merges else no_window
        shared = settings.refresh_steps > 0
        of = (str(stream.grid),) if shared else layer.key
        local_window = settings.find_local_window(layer.local_window)
        if local_window and left_out:
            report.of(settings).notes.add(f"local_window is left out: {left_out}")
        side = 0 if left_out else local_window
        if side:  # the first time, our kernel is compiled for the answer
            lack = kernel_choice.explain_lack(device)
        tokens = LayerTokens(
            stream,
            find_metric,
            call.make_draws(settings.seed, of, device),
            layer.downsample,
            call.stack.resolutions,
            side,
            layer.most_groups,
            by_number=bool(side) and not lack,
            channels=channels,
            match_local=partial(merging_choice.match_local, report.notes),
            merge_queries=merging_choice.merge_queries,
        )
        found = (
            _share_plans(call, settings, parts, layer, tokens)
            if shared
            else plan_parts(settings, tokens, parts)
        )
        if isinstance(found, Skipped):
            report.skip([settings], layer, found.reason)
            continue
        report.reduce(settings, layer, length, *_count_left(found, length))
        plans.update(found)
        if "keys and values" in parts:
            sizes = found["keys and values"].sizes if settings.proportional_attention else None
            group_draws = Draws((settings.seed, "groups"), device)
    if not plans:
        return None
    queries, keys = plans.get("queries"), plans.get("keys and values")
    window = keys if keys and keys.window else None
    queries = None if window else queries
    if window and lack and device.type == "cuda":
        report.notes.add(f"local windows are slower than they could be: {lack}")
    keys = None if window else keys
    groups = None
    if keys and keys.groups > 1:
        around = stream.before, stream.after
        if queries:
            groups = cut_groups(queries.slots, keys.groups, device, *around)
        else:
            groups = draw_groups(length, keys.groups, group_draws, *around)
    return LayerPlans(
        queries,
        keys,
        sizes,
        groups,
        window,
        plans.get("queries of cross-attention"),
        plans.get("tokens of the MLP"),
    )


def _count_left(plans: Mapping[Part, Any], length: int) -> tuple[int, int]:
    """How many queries attention computes, and how many keys a query reads."""
    queries, keys = plans.get("queries"), plans.get("keys and values")
    computed = length if queries is None else queries.queries_left
    return computed, length if keys is None else keys.slots


def _share_plans(
    call: ModelCall,
    settings: Settings,
    parts: frozenset[Part],
    layer: Layer,
    tokens: LayerTokens,
) -> Plans | Skipped:
    """The plans that all layers with this stream share in one call, and keep for some steps."""
    name = (settings, parts, tokens.stream, call.images)
    assert call.step is not None
    age = call.step // settings.refresh_steps
    shared = call.run.plans.get(name)
    reader = (call.number, layer.key)
    if shared and reader in shared.readers:
        # Between our hooks another node runs the model on one tile after the other.
        call.run.note_repeat(call.images)
        shared = None
    keeps = call.run.keeps_plans(call.images)
    if shared and (shared.call == call.number or (keeps and shared.age == age)):
        shared.readers.add(reader)
        return shared.plans
    plans = plan_parts(settings, tokens, parts)
    call.run.plans[name] = SharedPlans(plans, call.number, age, {reader})
    return plans
