"""The plan of one layer in one model call: what all active settings reduce together."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from ....tome_core.faster_forms import why_unavailable
from ....tome_core.layer import Layer
from ....tome_core.merging import MergeSettings
from ....tome_core.plan import Skipped
from ....tome_core.plan_layer import LayerPlan, Plans, join_plans, plan_layer
from ....tome_core.settings import Settings
from ....tome_core.windows import WindowPlan
from ..run.report import Counts
from ..run.state import Acting, ModelCall
from .overrides import Override


class NamedLayer(Protocol):
    """A layer or block of a model; its text is its name."""

    @property
    def key(self) -> tuple[int | str, ...]:
        """Names the layer within its model."""


def plan_attention(
    call: ModelCall,
    acting: Acting,
    named: NamedLayer,
    layer: Layer,
    tokens: Tensor,
    override: Override | None,
    of_model: int = 0,
) -> LayerPlan | None:
    """The plan of one layer in one call, None where nothing is reduced; both are reported.

    Args:
        acting: what the settings reduce in this layer.
        layer: it knows its backend.
        tokens: what is compared of them, (B, L, C) or (B, H, L, D).
        override: the attention that another node put in place of ComfyUI's.
        of_model: side of the local window where the user leaves it to the kind of model; 0 on
            UNets, where windows do not pay.
    """
    report, length = call.run.report, layer.stream.length
    plans: Plans = {}
    weighed, seed = False, 0
    for settings, targets in acting.items():
        merges = any("queries" in acting[each] for each in acting if each is not settings)
        side = settings.find_local_window(of_model)
        if side and merges:
            report.say(settings, "local_window is left out: Token Merge reduces its queries")
            side = 0
        if side and (reason := explain_override(settings, override)):
            report.say(settings, reason, named)
            continue
        own = replace(layer, local_window=side)
        draws = call.make_draws(settings.seed, named.key, layer.device)
        found = plan_layer(settings, targets, own, draws, tokens)
        if isinstance(found, Skipped):
            report.say(settings, found.reason, named)
            continue
        queries, keys = found.get("queries"), found.get("keys and values")
        counts = Counts(
            length,
            queries.queries_kept if queries else length,
            keys.keys_read if keys else length,
            isinstance(keys, WindowPlan),
            describe_windows(keys, layer, override) if isinstance(keys, WindowPlan) else "",
        )
        report.reduce(settings, named, counts)
        if layer.device.type == "cuda":
            _say_what_is_slow(call, settings, layer, found, tokens)
        plans.update(found)
        if "keys and values" in targets:
            weighed, seed = settings.proportional_attention, settings.seed
    return join_plans(plans, layer, weighed, seed) if plans else None


def explain_override(settings: Settings, override: Override | None) -> str:
    """Why a layer that would have a local window is left to another node; empty where it is not.

    Without the window the picture would be worse than with fewer steps, and a window in place of
    what the other node does has to be asked for.
    """
    if override is None or override.is_backend or settings.local_window is not None:
        return ""
    return (
        f"{override.name} is at work; use one of the two, or set {settings.window_input} to a size"
    )


def describe_windows(plan: WindowPlan, layer: Layer, override: Override | None) -> str:
    """How local windows share a layer with the attention that the user chose; empty where that is
    ComfyUI's own, and computes what it is given.
    """
    if plan.precision == "int8":
        name = override.name if override else layer.backend.name
        return f"in local windows in INT8, as {name} computes"
    if override is None:
        return ""
    how = "beside" if override.is_backend else "in place of"
    return f"in local windows {how} {override.name}"


def _say_what_is_slow(
    call: ModelCall, settings: Settings, layer: Layer, plans: Plans, tokens: Tensor
) -> None:
    """Where a GPU cannot run our kernel of the operator that these plans need.

    tokens: those that were compared; of single precision they are left to PyTorch in any case.
    """
    if any(isinstance(plan, WindowPlan) for plan in plans.values()):
        what, pronoun, reason = "local windows are", "they", layer.why_no_window_kernel()
    elif (
        isinstance(settings, MergeSettings)
        and settings.matching == "local"
        and tokens.dtype != torch.float32
    ):
        what, pronoun = "merging is", "it"
        reason = why_unavailable("merging.match_local", layer.device)
    else:
        return
    if reason:
        call.run.report.say(None, f"{what} slower than {pronoun} could be: {reason}")
