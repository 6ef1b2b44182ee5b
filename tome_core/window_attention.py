"""Attention with local windows: near keys exact, far keys drawn."""

from __future__ import annotations

from torch import Tensor

from .partial_attention import join_parts, join_to_part
from .tokens import divide_evenly, lay_in_rows, list_parts
from .window_heads import Heads
from .window_plan import WindowPlan

SHARE, SHARES = 3.0, {"cpu": 0.0}
"""How much may be copied at a time, in multiples of all queries, by device. As many heads are
computed together as fit into this, and at least one. With more heads at a time a GPU starts fewer
kernels, and by the estimates of docs/speed.md blocks need at most 1.05 times plain's memory. A
processor is faster with one head, see docs/tried.md."""


def attend_windows(
    plan: WindowPlan, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    """Attention of a whole stream.

    Args:
        q: (B, H, L, D).
        k, v: (B, G, L, D), with H heads or fewer.
        mask: added to the scores, (B or 1, H or 1, L or 1, L).
        scale: of the scores.

    Returns (B, H, L, D).

    Each set of keys is one call of a kernel: for all tiles, with keys of their own, and without a
    mask, which is what the fastest kernels ask for. The calls are joined by the log of the scores'
    sum, by which the keys of each set get their weight.
    """
    # In memory heads lie within tokens, as models want to have them.
    out = q.new_empty(q.shape[0], q.shape[2], q.shape[1], v.shape[3]).transpose(1, 2)
    k, v = lay_in_rows(k), lay_in_rows(v)
    of_picture = plan.stream.take_picture(out)
    for some in list_parts(q.shape[1], count_heads(plan, q.shape[1])):
        heads = Heads(plan, q, k, v, mask, scale, some)
        of_picture[:, some.start : some.stop] = _attend_picture(heads)
    if plan.of_others:
        # They are few, so that all heads are computed together.
        heads = Heads(plan, q, k, v, mask, scale, range(q.shape[1]))
        parts, weights = heads.attend_from_others(plan.of_others), (1.0, plan.of_others.weight)
        out.index_copy_(2, plan.others, join_parts(parts, weights))
    return out


def allows_merging(mask: Tensor | None) -> bool:
    """Whether queries can be merged: not where a mask hides other keys from each of them.

    mask: with queries before keys in its last two sides.
    """
    return mask is None or mask.shape[-2] == 1


def count_heads(plan: WindowPlan, heads: int) -> int:
    """How many heads are computed together."""
    tokens = plan.queries.numel()
    # In memory while one set is computed: the queries, and once more in the order of the set, the
    # outputs until then, and the set's keys and values.
    of_sets = (
        2 * keys.numbers.shape[1:].numel() + (number + 3) * tokens
        for number, keys in enumerate(plan.sets)
    )
    share = SHARES.get(plan.device.type, SHARE)
    most = max(1, int(share * heads * plan.stream.length / max(of_sets)))
    return divide_evenly(heads, most)


def _attend_picture(heads: Heads) -> Tensor:
    """Attention of the picture's queries. (B, h, N, D)"""
    plan, q = heads.plan, heads.take_tiles()
    parts, weights = [heads.attend_to_set(q, plan.near)], [plan.near.weight]
    of_far = [keys.weight for keys in plan.far]
    if plan.merged and allows_merging(heads.mask):
        fewer = heads.merge(q)
        far = join_to_part([heads.attend_to_set(fewer, keys) for keys in plan.far], of_far)
        parts, weights = [*parts, heads.unmerge(far)], [*weights, 1.0]
    else:
        parts += [heads.attend_to_set(q, keys) for keys in plan.far]
        weights += of_far
    if plan.of_others:
        parts.append(heads.attend_to_others(q))
        weights.append(1.0)
    return heads.restore(join_parts(parts, weights))
