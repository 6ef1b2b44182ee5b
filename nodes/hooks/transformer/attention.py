"""Attention of transformers on fewer tokens, through ComfyUI's ``optimized_attention_override``.

Queries and keys carry positions (RoPE) here, wherever a model has them. The mean of two keys
would stand for no position, so queries and keys are chosen; values are merged.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import torch
from torch import Tensor

from ....tome_core.plan import Skipped
from ....tome_core.streams import Stream
from ....tome_core.window_attention import allows_merging
from ..attention_call import Attention, AttentionCall, AttentionFunction, explain_no_window
from ..model_call import Acting, ModelCall, find_call
from ..planner import LayerPlans, plan_attention
from .arrangement import Arrangement
from .fewer_tokens import attend_to_fewer
from .layout import REFERENCES_KEY, Layout

BLOCK_KEY = "block_index"
"""Under which ComfyUI's models tell which block is running."""

NOT_MERGED = "a mask hides other keys from each query, so every query reads its keys for itself"


@dataclass(frozen=True)
class Block:
    """A transformer block by its number, from 0 in the order in which they run.

    total: how many blocks the model has, 0 where it does not tell which of them is running.
    """

    number: int
    total: int

    downsample = 1
    local_window = 12
    most_groups = 1
    """Groups bring merged queries no nearer to plain here (0.1 ± 0.4 dB farther on the small Flux,
    0.4 ± 0.3 on the small Wan, 8 pictures), and each would need a copy of its keys and values."""

    @property
    def key(self) -> tuple[int | str, ...]:
        return ("block", self.number)

    def __str__(self) -> str:
        return f"block {self.number}"


@dataclass
class TransformerCall:
    """One call of a transformer.

    Args:
        model: what both architectures know of the call.
        layout: where the picture lies in its sequences.
        first_single: number of the first block of the kind that ComfyUI calls "single".
        total_blocks: 0 where the model does not tell which block is running.
        earlier: the attention that another node put in place, None where there is none.
        whole: see ``ModelCall.find_whole``.
        ordinals: numbers the attention calls of models that do not tell their block.
        refined: a sequence with the prompt came, so that the refiners are done.
    """

    model: ModelCall
    layout: Layout
    first_single: int
    total_blocks: int
    earlier: Attention | None
    whole: set[Hashable]
    ordinals: count[int] = field(default_factory=count)
    refined: bool = False

    def find_block(self, options: Mapping[str, Any]) -> Block | None:
        """The block that runs, None within a refiner before or between the blocks."""
        if not self.total_blocks:
            return Block(next(self.ordinals), 0)
        index = options.get(BLOCK_KEY)
        if index is None:
            return None
        first = self.first_single if options.get("block_type") == "single" else 0
        return Block(first + index, self.total_blocks)

    def name_attention(self, options: Mapping[str, Any], q: Tensor, k: Tensor) -> Hashable:
        """All that the plans of an attention call depend on here.

        None where the model does not tell which block is running: earlier calls count then.
        """
        index = options.get(BLOCK_KEY)
        if index is None or not self.total_blocks:
            return None
        references = tuple(options.get(REFERENCES_KEY) or ())
        return options.get("block_type"), index, references, q.shape, k.shape

    def find_stream(self, tokens: int, options: Mapping[str, Any]) -> Stream | Skipped:
        """The picture's place among these tokens, skipped within a refiner before the blocks."""
        stream = self.layout.find_stream(tokens, options)
        if not self.layout.family.also_alone or isinstance(stream, Skipped):
            return stream
        self.refined |= stream.before > self.layout.references
        return stream if self.refined else Skipped("the picture is refined without the prompt")


@torch.compiler.disable
def attend(
    attention: Attention, q: Tensor, k: Tensor, v: Tensor, *args: Any, **kwargs: Any
) -> Tensor:
    """Attention as ComfyUI asks for it, reduced where a setting acts on this call's tokens."""
    options = kwargs.get("transformer_options") or {}
    call: TransformerCall | None = find_call(options)
    if call is None:
        return attention(q, k, v, *args, **kwargs)
    name = call.name_attention(options, q, k)
    if name in call.whole and call.earlier is None:
        return attention(q, k, v, *args, **kwargs)
    function = AttentionFunction(attention, call.earlier)
    acting = call.model.find_acting(Block.downsample)
    if not acting:
        return function(q, k, v, *args, **kwargs)
    tensors = AttentionCall.read(q, k, v, *args, **kwargs)
    found = _plan(call, acting, tensors, options, name)
    if found is None:
        return function(q, k, v, *args, **kwargs)
    plans, arranged, arrangement = found
    if plans.window:
        if plans.window.merged and not allows_merging(arranged.mask):
            call.model.run.report.notes.add(NOT_MERGED)
        out = arranged.run_in_windows(plans.window)
    else:
        out = attend_to_fewer(function, plans, arranged, call.model.run.report)
    return tensors.reshape_output(arrangement.restore(out))


def _plan(
    call: TransformerCall,
    acting: Acting,
    tensors: AttentionCall,
    options: Mapping[str, Any],
    name: Hashable,
) -> tuple[LayerPlans, AttentionCall, Arrangement] | None:
    """What is merged and downsampled in this attention call, None where nothing is.

    With the arranged call that the plans are of, and its arrangement.
    """
    report = call.model.run.report
    queries, tokens, values = (x.shape[2] for x in (tensors.q, tensors.k, tensors.v))
    family = call.layout.family
    other_keys = values != tokens or (queries != tokens and family.asking_text is None)
    if other_keys and family.text == "apart":
        # Cross-attention, or what LTX-Video does with guides of another strength than 1.
        if queries < tokens and isinstance(call.layout.find_stream(tokens, options), Stream):
            report.excuses.add("its attention is computed for some of the tokens at a time")
        return None
    block = call.find_block(options)
    if block is None:
        report.excuses.add("its attention calls do not tell which block is running")
        return None
    if other_keys:
        report.skip(acting, block, f"another node gave it {tokens} keys for {queries} tokens")
        return None
    stream = call.find_stream(tokens, options)
    if isinstance(stream, Skipped):
        if block.total:
            report.skip(acting, block, stream.reason)
        elif tokens not in call.layout.others:  # such a model also attends among those alone
            report.excuses.add(stream.reason)
        return None
    name = name or (block, stream, tensors.q.shape)
    if name in call.whole:
        return None

    arrangement = call.layout.find_arrangement(stream, tensors.k.device)
    if queries != arrangement.count_queries(tokens):
        report.skip(acting, block, f"its {queries} queries do not fit its {tokens} keys")
        return None
    if tensors.mask is not None and not _fits(tensors.mask, tokens):
        shape = tuple(tensors.mask.shape)
        report.skip(acting, block, f"its mask of shape {shape} does not fit its {tokens} tokens")
        return None

    arranged = arrangement.arrange(tensors)

    merges_queries = any("queries" in parts for parts in acting.values())

    def find_metric() -> Tensor:
        """Averaged over heads, (B, N, D): the keys, as in ToMe, or what is merged of queries.

        By the queries pictures with queries, keys and values merged are 1.2 dB nearer to plain
        than by the keys (small trained Flux, 8 steps, 8 pictures).
        """
        return stream.take_picture(arranged.q if merges_queries else arranged.k).mean(dim=1)

    no_window = explain_no_window(call.earlier)
    channels = tensors.heads * tensors.q.shape[3]
    plans = plan_attention(
        call.model, acting, block, stream, tensors.k.device, find_metric, no_window, channels
    )
    if plans is None:
        call.whole.add(name)
        return None
    return plans, arranged, arrangement


def _fits(mask: Tensor, tokens: int) -> bool:
    """True where it has one column for each key and one row for each query."""
    sides = (*[1] * (2 - mask.ndim), *mask.shape)[-2:]
    return {*sides} <= {1, tokens} and (sides[-1] == tokens or tokens == 1)
