"""An attention call on fewer tokens, for some heads at a time where much has to be copied."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from ....tome_core.plan import Plan
from ....tome_core.proportional import count_channels, expand_mask
from ....tome_core.tokens import (
    divide_evenly,
    list_parts,
    split_heads,
    take_for_groups,
    take_tokens,
)
from ..attention_call import AttentionCall, AttentionFunction
from ..planner import LayerPlans
from ..run_report import RunReport

SHARE = 0.6
"""How much may lie beside the output at a time, in multiples of all queries. Plain attention holds
queries, keys, values and outputs, four times as much; 4.6 are 1.15 times as much."""
LEAST_BYTES = 2**26
"""So much may lie there in any case, for each image. Fewer heads at a time start more kernels, and
with smaller ones a GPU would wait for the processor."""


def attend_to_fewer(
    function: AttentionFunction, plans: LayerPlans, call: AttentionCall, report: RunReport
) -> Tensor:
    """The output of ``call`` as ``AttentionCall.run`` gives it.

    plans: without a local window.
    """
    mask = None if call.mask is None else _reduce_mask(plans, expand_mask(call.mask), len(call.q))
    if function.earlier:
        # Another node may treat each head in its own way, so it is given all of them at once.
        few = function.run(_reduce(plans, replace(call, mask=mask)), plans.sizes, report)
        return plans.restore(few)
    whole = replace(call, mask=mask, skip_output_reshape=True)
    sizes = plans.sizes
    adds_channels = sizes is not None and function.choose_weighting(whole) == "channels"
    together = count_heads(plans, whole, adds_channels=adds_channels)
    if together == call.heads:
        return call.shape_output(_attend(function, plans, whole, report))
    # In memory heads lie within tokens, as models want to have them.
    images, _, length, _ = call.q.shape
    out = call.q.new_empty(images, length, call.heads, call.v.shape[3]).transpose(1, 2)
    for some in list_parts(call.heads, together):
        of_some = whole.take_heads(some)
        out[:, some.start : some.stop] = _attend(function, plans, of_some, report)
    return call.shape_output(out)


def count_heads(plans: LayerPlans, call: AttentionCall, *, adds_channels: bool) -> int:
    """How many heads are computed together.

    It does not depend on the number of images: however a batch is split, the picture is the same.

    adds_channels: whether copies with more channels give the keys their weights.
    """
    _, heads, length, channels = call.q.shape
    width = count_channels(channels) if adds_channels else channels
    held = _count_tokens(plans, length, adds_channels) * width
    allowed = max(SHARE * length * channels * heads, LEAST_BYTES / call.q.element_size())
    if heads * (held - length * channels) <= allowed:
        return heads
    # Heads that read the same keys stay together.
    of_keys = call.k.shape[1]
    repeats = heads // of_keys
    most = max(1, int(allowed / (repeats * held)))
    return repeats * divide_evenly(of_keys, most)


def _count_tokens(plans: LayerPlans, length: int, adds_channels: bool) -> int:
    """How many queries, keys, values and outputs of a head are in memory at once, beside those that
    the model holds.
    """
    queries = length
    if plans.groups:
        queries = plans.groups.groups * plans.groups.of_each
    elif plans.queries:
        queries = plans.queries.queries_left
    keys = plans.keys.groups * plans.keys.slots if plans.keys else 0
    if not (plans.groups or plans.queries or adds_channels):
        return 2 * keys + queries
    # The queries are copied, and in the end their outputs are copied to all tokens.
    return max(queries + 2 * keys + queries, queries + length)


def _attend(
    function: AttentionFunction, plans: LayerPlans, call: AttentionCall, report: RunReport
) -> Tensor:
    """The output for all tokens. (B, H, L, D)"""
    # The call with fewer tokens is given no name, so that its copies are freed after it.
    few = function.run(_reduce(plans, call), plans.sizes, report)  # (B·G, H, Q, D)
    # Some packs put a function in place of ComfyUI's that joins heads whatever it is asked for.
    return plans.restore(few if few.ndim == 4 else split_heads(few, call.heads))


def _reduce(plans: LayerPlans, call: AttentionCall) -> AttentionCall:
    """The call with fewer queries, keys and values; groups are rows of a larger batch.

    Its mask is reduced already.
    """
    q, k, v = call.q, call.k, call.v
    if plans.queries:
        q = plans.queries.choose(q)
    if plans.keys:
        k, v = plans.keys.choose(k), plans.keys.merge(v)
    if plans.groups:
        q = plans.groups.split(q)
    return replace(call, q=q, k=k, v=v)


def _reduce_mask(plans: LayerPlans, mask: Tensor, images: int) -> Tensor:
    """mask: (B or 1, H or 1, L or 1, L)."""
    if plans.queries:
        mask = _take_rows(mask, plans.queries)
    if plans.keys:
        mask = _take_columns(mask, plans.keys, images)
    return plans.groups.split_mask(mask) if plans.groups else mask


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
