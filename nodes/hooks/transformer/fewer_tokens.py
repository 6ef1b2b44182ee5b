"""An attention call on fewer tokens, for some heads at a time where much has to be copied."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from ....tome_core.attention.key_weights import count_channels, expand_mask
from ....tome_core.plan import Plan
from ....tome_core.plan_layer import LayerPlan
from ....tome_core.tokens import (
    divide_heads,
    make_output,
    split_heads,
    take_for_groups,
    take_tokens,
)
from ..attention.backend import Backend
from ..attention.call import AttentionCall
from ..run.report import RunReport

SHARE = 0.6
"""So much may lie beside the output at a time, in multiples of all queries. Unpatched attention
holds queries, keys, values and outputs, four times as much; 4.6 are 1.15 times as much."""
LEAST_BYTES = 2**26
"""So much may lie there in any case, for each image. Fewer heads at a time start more kernels, and
with smaller ones a GPU would wait for the CPU."""


def attend_to_fewer(
    backend: Backend, plan: LayerPlan, call: AttentionCall, report: RunReport
) -> Tensor:
    """The output of ``call`` as ``AttentionCall.run`` gives it.

    plan: without a local window.
    """
    mask = None if call.mask is None else _reduce_mask(plan, expand_mask(call.mask), len(call.q))
    call = replace(call, mask=mask)
    if backend.override and not backend.override.is_backend:
        # Another node may treat each head in its own way, so it is given all of them at once.
        return plan.restore(backend.run(_reduce(plan, call), plan.sizes, report))
    heads_apart = replace(call, skip_output_reshape=True)
    sizes = plan.sizes
    adds_channels = sizes is not None and backend.choose_weighting(heads_apart) == "channels"
    parts = choose_heads(plan, call, adds_channels=adds_channels)
    if len(parts) == 1:
        return call.shape_output(_attend(backend, plan, heads_apart, report))
    out = make_output(call.q, call.v.shape[3])
    for some in parts:
        of_some = heads_apart.take_heads(some)
        out[:, some.start : some.stop] = _attend(backend, plan, of_some, report)
    return call.shape_output(out)


def choose_heads(plan: LayerPlan, call: AttentionCall, *, adds_channels: bool) -> list[range]:
    """The heads that are computed together, part by part.

    It does not depend on the number of images: however a batch is split, the picture is the same.

    adds_channels: whether copies with more channels give the keys their weights.
    """
    _, heads, length, channels = call.q.shape
    width = count_channels(channels) if adds_channels else channels
    held = _count_tokens(plan, length, adds_channels) * width
    allowed = max(SHARE * length * channels * heads, LEAST_BYTES / call.q.element_size())
    if heads * (held - length * channels) <= allowed:
        return [range(heads)]
    return divide_heads(heads, held, allowed, heads // call.k.shape[1])


def _count_tokens(plan: LayerPlan, length: int, adds_channels: bool) -> int:
    """How many queries, keys, values and outputs of a head are in memory at once, beside those that
    the model holds.
    """
    queries = length
    if plan.groups:
        queries = plan.groups.groups * plan.groups.group_size
    elif plan.queries:
        queries = plan.queries.queries_kept
    keys = plan.keys.groups * plan.keys.keys_read if plan.keys else 0
    if not (plan.groups or plan.queries or adds_channels):
        return 2 * keys + queries
    # The queries are copied, and in the end their outputs are copied to all tokens.
    return max(queries + 2 * keys + queries, queries + length)


def _attend(backend: Backend, plan: LayerPlan, call: AttentionCall, report: RunReport) -> Tensor:
    """The output for all tokens. (B, H, L, D)"""
    # The call with fewer tokens is given no name, so that its copies are freed after it.
    few = backend.run(_reduce(plan, call), plan.sizes, report)  # (B·G, H, Q, D)
    # Some packs put a function in place of ComfyUI's that joins heads whatever it is asked for.
    return plan.restore(few if few.ndim == 4 else split_heads(few, call.heads))


def _reduce(plan: LayerPlan, call: AttentionCall) -> AttentionCall:
    """The call with fewer queries, keys and values; its mask is reduced already."""
    q, k, v = plan.reduce_heads(call.q, call.k, call.v)
    return replace(call, q=q, k=k, v=v)


def _reduce_mask(plan: LayerPlan, mask: Tensor, images: int) -> Tensor:
    """mask: (B or 1, H or 1, L or 1, L)."""
    if plan.queries:
        mask = _take_rows(mask, plan.queries)
    if plan.keys:
        mask = _take_columns(mask, plan.keys, images)
    return plan.groups.split_mask(mask) if plan.groups else mask


def _take_rows(mask: Tensor, plan: Plan) -> Tensor:
    """The rows of the queries that remain. (B or 1, H or 1, L or 1, K)."""
    if mask.shape[-2] == 1:
        return mask
    return take_tokens(mask.expand(len(plan.chosen), -1, -1, -1), plan.chosen)


def _take_columns(mask: Tensor, plan: Plan, images: int) -> Tensor:
    """The columns of the keys that remain, a row of the batch for each group."""
    if plan.groups > 1:
        return take_for_groups(mask.expand(images, -1, -1, -1).mT, plan.chosen).mT
    rows = max(len(mask), len(plan.chosen))
    return take_tokens(mask.expand(rows, -1, -1, -1).mT, plan.chosen).mT
