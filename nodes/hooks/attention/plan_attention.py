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
from ..run.state import Acting, ModelCall
from .backend import explain_no_window
from .call import Attention


class NamedLayer(Protocol):
    """A layer or block of a model; its text is its name."""

    @property
    def key(self) -> tuple[int | str, ...]:
        """Names the layer within its model."""


def plan_attention(
    call: ModelCall,
    acting: Acting,
    name: NamedLayer,
    layer: Layer,
    tokens: Tensor,
    override: Attention | None,
) -> LayerPlan | None:
    """The plan of one layer in one call, None where nothing is reduced; both are reported.

    Args:
        acting: what the settings reduce in this layer.
        layer: its local window is that of this kind of model.
        tokens: what is compared of them, (B, L, C) or (B, H, L, D).
        override: the attention that another node put in place of ComfyUI's.
    """
    report, length = call.run.report, layer.stream.length
    no_window = explain_no_window(override)
    plans: Plans = {}
    weighed, seed = False, 0
    for settings, targets in acting.items():
        merges = any("queries" in acting[each] for each in acting if each is not settings)
        reason = "Token Merge reduces its queries" if merges else no_window
        own = replace(layer, local_window=_find_window(call, settings, layer, reason))
        draws = call.make_draws(settings.seed, name.key, layer.device)
        found = plan_layer(settings, targets, own, draws, tokens)
        if isinstance(found, Skipped):
            report.say(settings, found.reason, name)
            continue
        queries, keys = found.get("queries"), found.get("keys and values")
        report.reduce(
            settings,
            name,
            length,
            queries.queries_kept if queries else length,
            keys.keys_read if keys else length,
        )
        if layer.device.type == "cuda":
            _say_what_is_slow(call, settings, layer, found, tokens)
        plans.update(found)
        if "keys and values" in targets:
            weighed, seed = settings.proportional_attention, settings.seed
    return join_plans(plans, layer, weighed, seed) if plans else None


def _find_window(call: ModelCall, settings: Settings, layer: Layer, reason: str) -> int:
    """Side of the local window. reason: why there can be none, which is then reported."""
    side = settings.find_local_window(layer.local_window)
    if side and reason:
        call.run.report.say(settings, f"local_window is left out: {reason}")
        return 0
    return side


def _say_what_is_slow(
    call: ModelCall, settings: Settings, layer: Layer, plans: Plans, tokens: Tensor
) -> None:
    """Where a GPU cannot run our kernel of the operator that these plans need.

    tokens: those that were compared; of single precision they are left to PyTorch in any case.
    """
    if any(isinstance(plan, WindowPlan) for plan in plans.values()):
        what, pronoun, operator = "local windows are", "they", "windows.attend"
    elif (
        isinstance(settings, MergeSettings)
        and settings.matching == "local"
        and tokens.dtype != torch.float32
    ):
        what, pronoun, operator = "merging is", "it", "merging.match_local"
    else:
        return
    if reason := why_unavailable(operator, layer.device):
        call.run.report.say(None, f"{what} slower than {pronoun} could be: {reason}")
