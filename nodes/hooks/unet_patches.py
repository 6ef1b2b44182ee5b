"""The attention patches of a UNet's transformer block.

ComfyUI hands the same ``extra_options`` to a block's input and output patches, and a new one to
every call of a block: what merge and unmerge share lives there.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...tome_core.grid import TokenGrid
from ...tome_core.plan import MergePlan
from ...tome_core.tile_plan import TilePlan
from .attention_call import CALL_KEY, OVERRIDE_KEY
from .block_plans import plan_block
from .run_state import UNetCall
from .unet_attention import attend
from .unet_layers import SelfAttentionLayer

CROSS_ATTENTION_KEY = "token_merge_cross_attention"
UNMERGE_KEY = "token_merge_unmerge"


def with_patches(transformer_options: dict[str, Any], call: UNetCall) -> dict[str, Any]:
    """A copy of ``transformer_options`` in which ``call`` reduces tokens.

    Our patches run last before attention and first after it: other nodes' patches so see every
    token, and one that changes the tokens itself is seen by ours, which then steps aside.
    They stand there in every step, active or not: a compiled model keeps what it saw first.
    """
    patches = dict(transformer_options.get("patches", {}))
    for name, patch in (("attn1_patch", attn1_patch), ("attn2_patch", attn2_patch)):
        patches[name] = [*patches.get(name, ()), patch]
    for name in ("attn1_output_patch", "attn2_output_patch"):
        patches[name] = [unmerge_patch, *patches.get(name, ())]
    return {**transformer_options, "patches": patches, OVERRIDE_KEY: attend, CALL_KEY: call}


@torch.compiler.disable
def attn1_patch(
    n: Tensor, context: Tensor, value: Tensor, extra_options: dict[str, Any]
) -> tuple[Tensor, Tensor, Tensor]:
    """Reduce the inputs of self-attention, so that its projections get fewer tokens too."""
    call: UNetCall = extra_options[CALL_KEY]
    layer = call.acting_layer(extra_options)
    if layer is None or _is_temporal(call, n, extra_options):
        return n, context, value
    reason = _why_step_aside(call, layer, (n, context, value), extra_options)
    if reason:
        call.run.report.step_aside(layer, reason)
        return n, context, value

    grid = TokenGrid.of_activations(extra_options["activations_shape"])
    try:
        plans = plan_block(call, layer, grid, n, tuple(extra_options.get("uuids", ())))
    except ValueError as refusal:
        call.run.report.step_aside(layer, str(refusal))
        return n, context, value
    # Only what is used later: the MLP, where memory peaks, is not to find the rest still there.
    extra_options[UNMERGE_KEY] = plans.queries
    if plans.cross_attention:
        extra_options[CROSS_ATTENTION_KEY] = plans.cross_attention
    if plans.mlp:
        call.mlp_plans[layer.key] = plans.mlp
    queries, keys, values = plans.reduce(n, context, value)
    if plans.key_sizes is not None:
        call.key_sizes["next"] = plans.key_sizes
    call.run.report.reduce(layer, grid.tokens, plans.queries_of(grid.tokens), keys.shape[1])
    return queries, keys, values


@torch.compiler.disable
def attn2_patch(
    n: Tensor, context: Tensor, value: Tensor, extra_options: dict[str, Any]
) -> tuple[Tensor, Tensor, Tensor]:
    """Merge the queries of cross-attention where the block's self-attention was reduced."""
    plan: MergePlan | TilePlan | None = extra_options.pop(CROSS_ATTENTION_KEY, None)
    if plan is None:
        return n, context, value
    call: UNetCall = extra_options[CALL_KEY]
    layer = call.acting_layer(extra_options)
    assert layer is not None  # it has a plan
    if call.is_replaced("attn2", layer):
        call.run.report.step_aside(layer, "another node computes the block's cross-attention")
        return n, context, value
    if n.shape[:2] != plan.shape:
        call.run.report.step_aside(layer, "another node changed the tokens of cross-attention")
        return n, context, value
    extra_options[UNMERGE_KEY] = plan
    return plan.merge(n), context, value


@torch.compiler.disable
def unmerge_patch(n: Tensor, extra_options: dict[str, Any]) -> Tensor:
    """Copy the attention output of merged queries back to every token."""
    plan = extra_options.pop(UNMERGE_KEY, None)
    if plan is None:
        return n
    if n.shape[1] != plan.slots:
        raise RuntimeError(
            f"Token Merge gave attention {plan.slots} queries and got {n.shape[1]} back; another "
            f"node on this model changes the attention's length, remove one of the two"
        )
    return plan.unmerge(n)


def _is_temporal(call: UNetCall, n: Tensor, extra_options: dict[str, Any]) -> bool:
    """True in SVD's temporal blocks: one sequence of frames per pixel, nothing to reduce."""
    if call.frames is None or n.shape[1] != call.frames:
        return False
    batch, _, height, width = extra_options["activations_shape"]
    return n.shape[0] * n.shape[1] == batch * height * width and n.shape[0] != batch


def _why_step_aside(
    call: UNetCall,
    layer: SelfAttentionLayer,
    inputs: tuple[Tensor, Tensor, Tensor],
    extra_options: dict[str, Any],
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
