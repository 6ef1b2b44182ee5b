"""Attention of transformers on fewer tokens, through ComfyUI's ``optimized_attention_override``."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ....tome_core.grid import Stream
from ....tome_core.layer import Layer
from ....tome_core.plan import Skipped
from ....tome_core.plan_layer import LayerPlan
from ....tome_core.windows import allows_merging
from ..attention.backend import Backend, accept_containers
from ..attention.call import Attention, AttentionCall, Container, take
from ..attention.plan_attention import plan_attention
from ..run.state import Acting, find_call
from .arrangement import Arrangement
from .call import Block, TransformerCall
from .fewer_tokens import attend_to_fewer

LOCAL_WINDOW = 12
"""The local window has this side where the user leaves it to the kind of model."""

MOST_GROUPS = 1
"""Groups of merged queries do not lower the error here (0.1 ± 0.4 dB larger on the small Flux,
0.4 ± 0.3 on the small Wan, 8 pictures), and each would need a copy of its keys and values."""

NOT_MERGED = "a mask hides other keys from each query, so every query reads its keys for itself"


@accept_containers
@torch.compiler.disable
def attend(
    attention: Attention,
    q: Tensor | Container,
    k: Tensor | Container,
    v: Tensor | Container,
    *args: Any,
    **kwargs: Any,
) -> Tensor:
    """Attention as ComfyUI asks for it, reduced where a setting acts on this call's tokens."""
    options = kwargs.get("transformer_options") or {}
    call: TransformerCall | None = find_call(options)
    if call is None:
        return attention(q, k, v, *args, **kwargs)
    backend = Backend(call.preferred or attention, call.override)
    name = call.name_attention(options, q, k)
    if not call.model.acting[Block.downsample] or name in call.unreduced:
        return backend(q, k, v, *args, **kwargs)
    # A variable of these arguments would hold the tensors, which a backend frees early.
    reduced = plan_call(call, name, backend, AttentionCall.read(q, k, v, *args, **kwargs), options)
    if reduced is None:
        return backend(q, k, v, *args, **kwargs)
    for x in (q, k, v):
        take(x)  # what is computed here is now the only one that holds the tensors
    arrangement, arranged, plan = reduced
    if plan.window:
        if plan.window.merged and not allows_merging(arranged.mask):
            call.model.run.report.say(None, NOT_MERGED)
        out = arranged.run_in_windows(plan.window)
    else:
        out = attend_to_fewer(backend, plan, arranged, call.model.run.report)
    return arrangement.restore(out)


def plan_call(
    call: TransformerCall,
    name: Hashable,
    backend: Backend,
    tensors: AttentionCall,
    options: Mapping[str, Any],
) -> tuple[Arrangement, AttentionCall, LayerPlan] | None:
    """Returns (arrangement, call, plan). None where nothing is reduced.

    The plan is of this call, which the arrangement made from the given one.

    name: see ``name_attention``. backend: what computes the call where nothing is reduced.
    """
    acting = call.model.acting[Block.downsample]
    sequence = locate(call, acting, tensors, options)
    if sequence is None:
        return None
    name = name or (sequence.block, sequence.stream, tensors.q.shape)
    if name in call.unreduced:
        return None
    arranged = sequence.arrangement.arrange(tensors)
    plan = plan_sequence(call, acting, backend, sequence, arranged)
    if plan is None:
        call.unreduced.add(name)
        return None
    return sequence.arrangement, arranged, plan


@dataclass(frozen=True)
class Sequence:
    """Where the picture lies among the tokens of an attention call.

    block: the block that runs. stream: the sequence that plans are of. arrangement: how the call
    becomes one on this sequence.
    """

    block: Block
    stream: Stream
    arrangement: Arrangement


def locate(
    call: TransformerCall, acting: Acting, tensors: AttentionCall, options: Mapping[str, Any]
) -> Sequence | None:
    """The sequence of an attention call, None where it is none that is reduced; the report is told
    why.
    """
    report, layout = call.model.run.report, call.layout
    queries, keys, values = (x.shape[2] for x in (tensors.q, tensors.k, tensors.v))
    family = layout.family
    other_keys = values != keys or (queries != keys and family.prompt_queries is None)
    if family.text == "apart" and (other_keys or layout.is_apart(keys)):
        # Cross-attention, sound that attends to itself, or what LTX-Video does with guides of
        # another strength than 1.
        if queries < keys and isinstance(layout.find_stream(keys), Stream):
            report.idle_reasons.add("its attention is computed for some of the tokens at a time")
        return None
    block = call.find_block(options)
    if block is None:
        report.idle_reasons.add("its attention calls do not tell which block is running")
        return None
    if other_keys:
        _skip(call, acting, block, f"another node gave it {keys} keys for {queries} tokens")
        return None
    stream = call.find_stream(keys, options)
    if isinstance(stream, Skipped):
        if layout.is_apart(keys):
            return None
        if family.tells_block:
            _skip(call, acting, block, stream.reason)
        else:
            report.idle_reasons.add(stream.reason)
        return None
    arrangement = layout.find_arrangement(stream, tensors.k.device)
    if reason := _explain_misfit(tensors, arrangement, keys):
        _skip(call, acting, block, reason)
        return None
    return Sequence(block, stream, arrangement)


def _skip(call: TransformerCall, acting: Acting, block: Block, reason: str) -> None:
    for settings in acting:
        call.model.run.report.say(settings, reason, block)


def _explain_misfit(tensors: AttentionCall, arrangement: Arrangement, keys: int) -> str:
    """Why a call on a known sequence is left alone, empty where it is not."""
    queries, mask = tensors.q.shape[2], tensors.mask
    if queries != arrangement.count_queries(keys):
        return f"its {queries} queries do not fit its {keys} keys"
    if mask is not None and not _fits(mask, keys):
        return f"its mask of shape {tuple(mask.shape)} does not fit its {keys} tokens"
    return ""


def _fits(mask: Tensor, tokens: int) -> bool:
    """True where it has one column for each key and one row for each query."""
    sides = (*[1] * (2 - mask.ndim), *mask.shape)[-2:]
    return {*sides} <= {1, tokens} and (sides[-1] == tokens or tokens == 1)


def plan_sequence(
    call: TransformerCall,
    acting: Acting,
    backend: Backend,
    sequence: Sequence,
    arranged: AttentionCall,
) -> LayerPlan | None:
    """What is reduced in an attention call, None where nothing is.

    Keys are compared, as in ToMe, or what is merged of queries. By the queries the error of
    pictures with queries, keys and values merged is 1.2 dB smaller than by the keys (small trained
    Flux, 8 steps, 8 pictures).
    """
    layer = Layer(
        sequence.stream,
        arranged.k.device,
        channels=arranged.heads * arranged.q.shape[3],
        most_groups=MOST_GROUPS,
        dtype=arranged.q.dtype,
        head_channels=arranged.q.shape[3],
        masked=arranged.mask is not None,
    )
    layer = backend.add_speed(layer, arranged.options)
    merges_queries = any("queries" in targets for targets in acting.values())
    tokens = arranged.q if merges_queries else arranged.k
    return plan_attention(
        call.model, acting, sequence.block, layer, tokens, call.override, LOCAL_WINDOW
    )
