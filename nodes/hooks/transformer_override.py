"""Attention of transformers on fewer tokens, through ComfyUI's ``optimized_attention_override``.

Positions (RoPE) are in queries and keys by then, wherever a model has them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

import torch
from torch import Tensor

from ...tome_core.interleaving import Deal
from ...tome_core.matchers import why_left_alone
from ...tome_core.settings import MergeSettings
from ...tome_core.streams import Stream, StreamPlan
from ...tome_core.tile_plan import TilePlan
from .attention_call import CALL_KEY, LEFT_OUT, OVERRIDE_KEY, Attention, AttentionCall
from .layer_plans import deal_of, downsample_plan_of, merge_plan_of
from .layouts import Layout, UnknownLayoutError
from .run_state import ModelCall

ONLY_RESOLUTION = 1
"""A transformer's blocks all see the same grid: there is one resolution, the finest."""


@dataclass(frozen=True)
class TransformerCall(ModelCall):
    """One call of a transformer.

    layout: where the picture lies in its sequences. first_single: number of the first block of the
    kind that ComfyUI calls "single". total_blocks: 0 where the model does not tell which block is
    running. earlier: the attention that another node put in place, None where there is none.
    ordinals: numbers the attention calls of models that do not tell their block.
    """

    layout: Layout
    first_single: int
    total_blocks: int
    earlier: Attention | None
    ordinals: count[int] = field(default_factory=count)

    def block(self, transformer_options: dict[str, Any]) -> Block | None:
        """The block that is running, None within a refiner before or between the blocks."""
        if not self.total_blocks:
            return Block(next(self.ordinals))
        index = transformer_options.get("block_index")
        if index is None:
            return None
        single = transformer_options.get("block_type") == "single"
        return Block(index + (self.first_single if single else 0))


@dataclass(frozen=True)
class Block:
    """A transformer block by its number, from 0 in the order in which they run."""

    number: int

    def __str__(self) -> str:
        return f"block {self.number}"


@dataclass(frozen=True)
class AttentionPlans:
    """Plans for one attention call; the same object where queries share that of the keys."""

    queries: StreamPlan | None
    keys_and_values: StreamPlan | None
    proportional: bool
    deal: Deal | None = None

    def run(self, call: AttentionCall, attention: Attention) -> Tensor:
        """The output of attention on fewer tokens, for every token again."""
        sizes = None
        if self.queries:
            mask = None if call.mask is None else self.queries.choose_queries_of_mask(call.mask)
            call = replace(call, q=self.queries.choose(call.q), mask=mask)
        if self.deal:
            mask = None if call.mask is None else _of_every_row(call.mask, len(call.q))
            call = replace(call, mask=mask)
        if self.keys_and_values:
            plan = self.keys_and_values
            mask = None if call.mask is None else plan.choose_keys_of_mask(call.mask)
            call = replace(call, k=plan.choose(call.k), v=plan.merge(call.v), mask=mask)
            if self.proportional and not plan.weighs_alike:
                sizes = plan.sizes(call.k.device)
        if self.deal:
            mask = None if call.mask is None else self.deal.split_rows_of_mask(call.mask)
            call = replace(call, q=self.deal.split(call.q), mask=mask)
        out = call.run(attention) if sizes is None else call.run_with_sizes(attention, sizes)
        if self.deal:
            out = self.deal.join(out)
        return self.queries.unmerge(out) if self.queries else out


def _of_every_row(mask: Tensor, batch: int) -> Tensor:
    """A mask as ComfyUI takes it, with four dimensions. (B, H or 1, Nq or 1, Nk)."""
    if mask.ndim == 3:
        mask = mask[:, None]
    mask = mask[(None,) * (4 - mask.ndim)]
    return mask.expand(batch, -1, -1, -1)


def with_override(transformer_options: dict[str, Any], call: TransformerCall) -> dict[str, Any]:
    """A copy of ``transformer_options`` in which ``call`` reduces tokens.

    The override stands there in every step, active or not: a compiled model keeps what it saw.
    """
    return {**transformer_options, OVERRIDE_KEY: attend, CALL_KEY: call}


@torch.compiler.disable
def attend(attention: Attention, *args: Any, **kwargs: Any) -> Tensor:
    """Attention as ComfyUI asks for it, reduced where a setting acts on this call's tokens."""
    options = kwargs.get("transformer_options") or {}
    call: TransformerCall | None = options.get(CALL_KEY)
    if call is None:
        return attention(*args, **kwargs)
    inner = partial(call.earlier, attention) if call.earlier else attention
    if not call.active:
        return inner(*args, **kwargs)
    tensors = AttentionCall.of(*args, **kwargs)
    plans = _plans(call, tensors, options, attention)
    if plans is None:
        return inner(*args, **kwargs)
    return tensors.returned(plans.run(tensors, inner))


def _plans(
    call: TransformerCall,
    tensors: AttentionCall,
    options: dict[str, Any],
    attention: Attention,
) -> AttentionPlans | None:
    """What is merged and downsampled in this attention call, None where nothing is."""
    tokens = tensors.q.shape[2]
    if tensors.k.shape[2] != tokens or tensors.v.shape[2] != tokens:
        return None  # cross-attention
    block = call.block(options)
    if block is None:
        call.run.report.pass_over("its attention calls do not tell which block is running")
        return None
    try:
        _refuse_other_masks(tensors.mask, tokens)
        stream = call.layout.stream(tokens, options)
        plans = _plan_stream(call, block, stream, tensors, options)
    except UnknownLayoutError as reason:
        if call.total_blocks:
            call.run.report.step_aside(block, str(reason))
        else:
            # It may be right: such a model also attends among the prompt's tokens alone.
            call.run.report.pass_over(str(reason))
        return None
    except ValueError as refusal:
        call.run.report.step_aside(block, str(refusal))
        return None
    if plans.proportional and not tensors.takes_sizes(attention, call.earlier):
        call.run.report.note(LEFT_OUT)
        plans = replace(plans, proportional=False)
    queries = plans.queries.length if plans.queries else tokens
    keys = plans.keys_and_values.length if plans.keys_and_values else tokens
    call.run.report.reduce(block, tokens, queries, keys)
    return plans


def _refuse_other_masks(mask: Tensor | None, tokens: int) -> None:
    """Raises ValueError where the mask is not of one column per key and one row per query."""
    if mask is None:
        return
    sides = (*[1] * (2 - mask.ndim), *mask.shape)[-2:]
    if not {*sides} <= {1, tokens} or sides[-1] == 1 != tokens:
        raise ValueError(f"its mask of shape {tuple(mask.shape)} does not fit its {tokens} tokens")


def _plan_stream(
    call: TransformerCall,
    block: Block,
    stream: Stream,
    tensors: AttentionCall,
    options: dict[str, Any],
) -> AttentionPlans:
    """Raises ValueError, whose message is the reason, where nothing can be reduced at a gain."""
    plans: dict[str, StreamPlan] = {}
    proportional = False
    reasons: list[str] = []
    grid, layer = stream.grid, ("block", block.number)
    for settings, roles in call.roles_by_settings(ONLY_RESOLUTION).items():
        if call.total_blocks and settings.transformer.keeps(block.number, call.total_blocks):
            reasons.append("keep_first_blocks or keep_last_blocks")
            continue
        factor = call.reduction.factor(settings, ONLY_RESOLUTION)
        reason = why_left_alone(grid, settings, factor)
        if reason:
            reasons.append(reason)
            continue
        if isinstance(settings, MergeSettings):
            # ToMe's metric: the keys, averaged over heads.
            metric = stream.picture(tensors.k).mean(dim=1)  # (B, N, D)
            images = tuple(options.get("uuids", ()))
            merge = merge_plan_of(settings, call, layer, grid, metric, images)
            assert not isinstance(merge, TilePlan)  # refused in transformer.attach
            plan = StreamPlan(stream, merge)
        else:
            others = stream.before + stream.after
            downsample = downsample_plan_of(settings, call, layer, grid, factor, others)
            plan = StreamPlan(stream, downsample)
        plans.update(dict.fromkeys(roles, plan))
        if "keys_and_values" in roles:
            proportional = settings.proportional_attention
    if not plans:
        raise ValueError(" and ".join(reasons))
    queries, keys = plans.get("queries"), plans.get("keys_and_values")
    deal = None
    if keys and keys.groups > 1:
        left = queries.length if queries else stream.length
        deal = deal_of(call, layer, left, keys.groups)
    return AttentionPlans(queries, keys, proportional, deal)
