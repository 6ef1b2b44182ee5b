"""The attention patches of a UNet's transformer block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....tome_core.plan_layer import Inputs
from ..attention.overrides import OVERRIDE_KEY
from ..attention.plan_attention import plan_attention
from ..run.state import find_call
from ..settings_stack import SettingsStack
from .attention import attend
from .call import RunningBlock, UNetCall, find_key
from .layers import SelfAttentionLayer


def add_patches(options: dict[str, Any], stack: SettingsStack) -> dict[str, Any]:
    """The transformer_options with the patches that the settings can use, and no others.

    The same ones in every step, active or not: a compiled model keeps what it saw first. Ours run
    last before attention and first after it: patches of other nodes see every token, and a layer
    whose tokens they change is skipped.
    """
    if not stack.targets:
        return options
    patches = dict(options.get("patches", {}))
    patches["attn1_patch"] = [*patches.get("attn1_patch", ()), reduce_self_attention]
    _put_first(patches, "attn1_output_patch", restore_self_attention)
    if "queries of cross-attention" in stack.targets:
        patches["attn2_patch"] = [*patches.get("attn2_patch", ()), reduce_cross_attention]
        _put_first(patches, "attn2_output_patch", restore_cross_attention)
    found = {**options, "patches": patches}
    if stack.weighs_keys or stack.has_windows:
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
    layer = call.layers.get(find_key(extra_options))
    if layer is None:
        return n, context, value
    activations = tuple(extra_options.get("activations_shape", ()))
    name = (layer.key, n.shape, activations)
    if name in call.unreduced or (call.frames == n.shape[1] and _is_temporal(n, activations)):
        return n, context, value
    acting = call.model.acting[layer.downsample]
    if reason := _explain_skip(call, layer, (n, context, value), activations):
        for settings in acting:
            call.model.run.report.say(settings, reason, layer)
        return n, context, value
    height, width = activations[2:]
    measured = layer.measure(height, width, call.model.stack.resolutions, n.device, n.dtype)
    plan = plan_attention(call.model, acting, layer, call.add_speed(measured), n, call.override)
    if plan is None:
        call.unreduced.add(name)
        return n, context, value
    queries, keys, values = plan.reduce_inputs(n, context, value)
    given = tuple(x for x in (keys, values) if x is not context and x is not value)
    call.running = RunningBlock.begin(layer, plan, given)
    return queries, keys, values


@torch.compiler.disable
def restore_self_attention(n: Tensor, extra_options: dict[str, Any]) -> Tensor:
    """Give the output of self-attention back to every token."""
    call: UNetCall = find_call(extra_options)
    running = call.find_block(extra_options)
    if running is None:
        return n
    running.release()
    # Sizes that attention did not take are not for the next attention, whatever its length.
    outputs, running.outputs, running.sizes, running.window = running.outputs, None, None, None
    if outputs is None:
        return n
    if outputs.groups:
        _check_length(n, outputs.groups.group_size)
    elif outputs.queries:
        _check_length(n, outputs.queries.queries_kept)
    return outputs.restore(n)


@torch.compiler.disable
def reduce_cross_attention(
    n: Tensor, context: Tensor, value: Tensor, extra_options: dict[str, Any]
) -> Inputs:
    """Merge the queries of cross-attention where the block's self-attention was reduced."""
    call: UNetCall = find_call(extra_options)
    running = call.find_block(extra_options)
    plan = running.cross_attention if running else None
    if running is None or plan is None:
        return n, context, value
    reason = ""
    if call.is_replaced("attn2", running.layer):
        reason = "another node computes the block's cross-attention"
    elif n.shape[:2] != plan.shape:
        reason = "another node changed the tokens of cross-attention"
    if reason:
        for settings, targets in call.model.acting[running.layer.downsample].items():
            if "queries of cross-attention" in targets:
                call.model.run.report.say(settings, reason, running.layer)
        running.cross_attention = None
        return n, context, value
    return plan.merge(n), context, value


@torch.compiler.disable
def restore_cross_attention(n: Tensor, extra_options: dict[str, Any]) -> Tensor:
    """Copy the output of cross-attention of merged queries back to every token."""
    call: UNetCall = find_call(extra_options)
    running = call.find_block(extra_options)
    if running is None or running.cross_attention is None:
        return n
    plan, running.cross_attention = running.cross_attention, None
    _check_length(n, plan.queries_kept)
    return plan.unmerge(n)


def _check_length(n: Tensor, given: int) -> None:
    if n.shape[1] != given:
        raise RuntimeError(
            f"Token Merge gave attention {given} queries and got {n.shape[1]} back; another "
            f"node on this model changes the attention's length, remove one of the two"
        )


def _is_temporal(n: Tensor, activations: tuple[int, ...]) -> bool:
    """True in SVD's temporal blocks: one sequence of frames per pixel, nothing to reduce.

    n: (B, N, C) with as many tokens as the video has frames.
    """
    if not activations:
        return False
    batch, _, height, width = activations
    return n.shape[0] * n.shape[1] == batch * height * width and n.shape[0] != batch


def _explain_skip(
    call: UNetCall, layer: SelfAttentionLayer, inputs: Inputs, activations: tuple[int, ...]
) -> str:
    """Why the layer cannot be reduced in this call, empty where it can."""
    if call.is_replaced("attn1", layer):
        return "another node computes the block's self-attention"
    if not activations:
        return "this ComfyUI does not tell the size of a layer's activations"
    batch, tokens = activations[0], activations[2] * activations[3]
    if call.frames == tokens:
        return f"{tokens} tokens cannot be told from {call.frames} frames"
    queries, keys = ((*x.shape[:2],) for x in inputs[:2])  # there are as many values as keys
    if queries != (batch, tokens):
        return f"another node changed its tokens from {tokens} to {queries[1]}"
    if keys != queries:
        return f"another node gave it {keys[1]} keys for {tokens} tokens"
    return ""
