"""The attention patches of a UNet's transformer block."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ....tome_core.grid import TokenGrid
from ....tome_core.streams import Stream
from ..attention_call import OVERRIDE_KEY, explain_no_window
from ..model_call import find_call
from ..planner import LayerPlans, plan_attention
from ..settings_stack import SettingsStack
from .attention import attend
from .call import RunningBlock, UNetCall
from .layers import SelfAttentionLayer

Inputs = tuple[Tensor, Tensor, Tensor]
"""Of the query, key and value projections, each (B, N, C); often the same tensor."""


def add_patches(options: dict[str, Any], stack: SettingsStack) -> dict[str, Any]:
    """The transformer_options with the patches that the settings can use, and no others.

    The same ones in every step, active or not: a compiled model keeps what it saw first. Ours run
    last before attention and first after it: patches of other nodes see every token, and a layer
    whose tokens they change is skipped.
    """
    parts = stack.parts
    if not parts:
        return options
    patches = dict(options.get("patches", {}))
    patches["attn1_patch"] = [*patches.get("attn1_patch", ()), reduce_self_attention]
    _put_first(patches, "attn1_output_patch", restore_self_attention)
    if "queries of cross-attention" in parts:
        patches["attn2_patch"] = [*patches.get("attn2_patch", ()), reduce_cross_attention]
        _put_first(patches, "attn2_output_patch", restore_cross_attention)
    found = {**options, "patches": patches}
    if stack.weighs_keys or stack.has_windows(SelfAttentionLayer.local_window):
        found[OVERRIDE_KEY] = attend
    return found


def _put_first(patches: dict[str, Any], name: str, patch: Callable[..., Tensor]) -> None:
    patches[name] = [patch, *patches.get(name, ())]


@torch.compiler.disable
def reduce_self_attention(
    n: Tensor, context: Tensor, value: Tensor, extra_options: dict[str, Any]
) -> Inputs:
    """Reduce the inputs of self-attention, so that its projections get fewer tokens too."""
    call: UNetCall = find_call(extra_options)
    call.running = None
    layer = call.find_layer(extra_options)
    if layer is None:
        return n, context, value
    name = (layer.key, n.shape, *extra_options.get("activations_shape", ()))
    if name in call.whole or _is_temporal(call, n, extra_options):
        return n, context, value
    acting = call.model.find_acting(layer.downsample)
    reason = _explain_skip(call, layer, (n, context, value), extra_options)
    if reason:
        call.model.run.report.skip(acting, layer, reason)
        return n, context, value
    stream = _read_stream(tuple(extra_options["activations_shape"]))
    no_window = explain_no_window(call.earlier)
    plans = plan_attention(
        call.model, acting, layer, stream, n.device, lambda: n, no_window, layer.channels
    )
    if plans is None:
        call.whole.add(name)
        return n, context, value
    # Without the plan of the keys, which must be gone when memory peaks in the MLP.
    restores = plans.queries or plans.groups
    outputs = LayerPlans(queries=plans.queries, groups=plans.groups) if restores else None
    queries, keys, values = _reduce(plans, n, context, value)
    given = tuple(x for x in (keys, values) if x is not context and x is not value)
    call.running = RunningBlock(
        layer, plans.sizes, plans.window, outputs, plans.cross_attention, plans.mlp, given
    )
    return queries, keys, values


def _reduce(plans: LayerPlans, n: Tensor, context: Tensor, value: Tensor) -> Inputs:
    """What the projections get; each tensor is reduced once."""
    queries = plans.queries.merge(n) if plans.queries else n  # (B, Mq, C)
    if plans.keys:
        same = value is n and plans.keys is plans.queries
        values = queries if same else plans.keys.merge(value)  # (B or B·G, Mk, C)
        if plans.sizes is not None:
            # Not a mean: it is less like any of its tokens, so attention to it is flatter.
            context = plans.keys.choose(context)
        else:
            context = values if context is value else plans.keys.merge(context)
        value = values
    return plans.groups.split(queries) if plans.groups else queries, context, value


@torch.compiler.disable
def restore_self_attention(n: Tensor, extra_options: dict[str, Any]) -> Tensor:
    """Give the output of self-attention back to every token."""
    call: UNetCall = find_call(extra_options)
    running = call.find_running(extra_options)
    if running is None:
        return n
    running.release()
    # Sizes that attention did not take are not for the next attention, whatever its length.
    outputs, running.outputs, running.sizes, running.window = running.outputs, None, None, None
    if outputs is None:
        return n
    if outputs.groups:
        _check_length(n, outputs.groups.of_each)
    elif outputs.queries:
        _check_length(n, outputs.queries.slots)
    return outputs.restore(n)


@torch.compiler.disable
def reduce_cross_attention(
    n: Tensor, context: Tensor, value: Tensor, extra_options: dict[str, Any]
) -> Inputs:
    """Merge the queries of cross-attention where the block's self-attention was reduced."""
    call: UNetCall = find_call(extra_options)
    running = call.find_running(extra_options)
    plan = running.cross_attention if running else None
    if running is None or plan is None:
        return n, context, value
    reason = ""
    if call.is_replaced("attn2", running.layer):
        reason = "another node computes the block's cross-attention"
    elif n.shape[:2] != plan.shape:
        reason = "another node changed the tokens of cross-attention"
    if reason:
        acting = call.model.find_acting(running.layer.downsample)
        merging = [each for each, parts in acting.items() if "queries of cross-attention" in parts]
        call.model.run.report.skip(merging, running.layer, reason)
        running.cross_attention = None
        return n, context, value
    return plan.merge(n), context, value


@torch.compiler.disable
def restore_cross_attention(n: Tensor, extra_options: dict[str, Any]) -> Tensor:
    """Copy the output of cross-attention of merged queries back to every token."""
    call: UNetCall = find_call(extra_options)
    running = call.find_running(extra_options)
    if running is None or running.cross_attention is None:
        return n
    plan, running.cross_attention = running.cross_attention, None
    _check_length(n, plan.slots)
    return plan.unmerge(n)


def _check_length(n: Tensor, given: int) -> None:
    if n.shape[1] != given:
        raise RuntimeError(
            f"Token Merge gave attention {given} queries and got {n.shape[1]} back; another "
            f"node on this model changes the attention's length, remove one of the two"
        )


@lru_cache(maxsize=32)
def _read_stream(activations: tuple[int, ...]) -> Stream:
    return Stream(TokenGrid.from_activations(activations))


def _is_temporal(call: UNetCall, n: Tensor, extra_options: dict[str, Any]) -> bool:
    """True in SVD's temporal blocks: one sequence of frames per pixel, nothing to reduce."""
    if call.frames is None or n.shape[1] != call.frames:
        return False
    batch, _, height, width = extra_options["activations_shape"]
    return n.shape[0] * n.shape[1] == batch * height * width and n.shape[0] != batch


def _explain_skip(
    call: UNetCall, layer: SelfAttentionLayer, inputs: Inputs, extra_options: dict[str, Any]
) -> str | None:
    """Why the layer cannot be reduced in this call, None where it can."""
    if call.is_replaced("attn1", layer):
        return "another node computes the block's self-attention"
    shape = extra_options.get("activations_shape")
    if shape is None:
        return "this ComfyUI does not tell the size of a layer's activations"
    batch, tokens = shape[0], shape[2] * shape[3]
    if call.frames == tokens:
        return f"{tokens} tokens cannot be told from {call.frames} frames"
    queries, keys, values = ((*x.shape[:2],) for x in inputs)
    if queries != (batch, tokens):
        return f"another node changed its tokens from {tokens} to {queries[1]}"
    if keys != queries or values != queries:
        return f"another node gave it {keys[1]} keys for {tokens} tokens"
    return None
