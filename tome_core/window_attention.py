"""Attention with local windows: near keys exact, far keys drawn."""

from __future__ import annotations

from functools import reduce

from einops import rearrange
from torch import Tensor

from .attention_kernels import Part
from .partial_attention import exchange_keys, join_parts, weigh_part
from .row_attention import Queries, Sequence
from .window_plan import WindowPlan

SHARE = 0.5
"""Boxes are read together as long as their copies take at most this share of the queries. Fewer
calls are faster on a GPU, where each has its launches."""


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

    The queries of a draw read all keys of that draw, so that they are one long row of queries and
    no key is hidden: this is what the fastest kernels ask for. The drawn keys in a tile's box are
    then read once more and subtracted, and the whole box is added in their place. All copies are
    made for one draw at a time, and those for boxes a few tiles at a time.
    """
    sequence, window = Sequence(q, k, v, mask, scale), plan.window
    # In memory heads lie within tokens, as models want to have them.
    out = q.new_empty(q.shape[0], q.shape[2], q.shape[1], v.shape[3]).transpose(1, 2)
    if len(window.others):
        others = window.others[None]
        _put(out, others, _attend_drawn(sequence, plan, 0, sequence.take_queries(others))[0])
    tiles, near = plan.boxes
    inside = plan.list_drawn_inside(q.dtype, k.shape[1])
    of_tiles = map(plan.deal, (tiles, near[None], *inside))
    for draw, each in enumerate(zip(*of_tiles, strict=True)):
        _put(out, each[0], _attend_tiles(sequence, plan, draw, *each))
    return out


def _attend_tiles(
    sequence: Sequence,
    plan: WindowPlan,
    draw: int,
    tiles: Tensor,
    near: Tensor,
    inside: Tensor,
    bias: Tensor,
) -> Tensor:
    """Attention of the tiles that read one draw.

    Args:
        tiles: (t, Q) int64.
        near: (1, t, K) int64, the tokens of each tile's box.
        inside: (G or 1, t, C) int64, the drawn keys of each head that may lie in it.
        bias: (G or 1, t, C), see ``WindowPlan.list_drawn_inside``.

    Returns (t, B·H, Q, D).
    """
    queries = sequence.take_queries(tiles)
    drawn = _attend_drawn(sequence, plan, draw, queries)
    drawn_inside = _attend_boxes(sequence, queries, inside, bias)
    weighed = [weigh_part(part, plan.common_size) for part in drawn_inside]
    return exchange_keys(drawn, weighed, _attend_boxes(sequence, queries, near, None))


def _attend_drawn(sequence: Sequence, plan: WindowPlan, draw: int, queries: Queries) -> Part:
    """All keys of a draw, and all that are not of the picture, read by all queries.

    Returns outputs (t, B·H, Q, D) and their lse.
    """
    keys = sequence.take_keys(plan.list_drawn(draw, sequence.k.shape[1])[:, None])
    tiles, row = len(queries.numbers), queries.join()
    parts = (
        weigh_part(sequence.attend(row, keys.narrow(start, end), None), size)
        for start, end, size in plan.spans_of_size
    )
    out, lse = reduce(join_parts, parts)
    return (
        rearrange(out, "1 h (t q) d -> t h q d", t=tiles),
        rearrange(lse, "1 h (t q) -> t h q", t=tiles),
    )


def _attend_boxes(
    sequence: Sequence, queries: Queries, numbers: Tensor, bias: Tensor | None
) -> list[Part]:
    """Each tile reads keys of its own, a few tiles at a time.

    numbers: (G or 1, t, n) int64. bias: (G or 1, t, n), added to the scores. Returns outputs
    (t', B·H, Q, D) and their lse.
    """
    tiles, size = queries.numbers.shape
    together = max(1, int(SHARE * sequence.length / (size + 2 * numbers.shape[2])))
    return [
        sequence.attend(
            queries.take(some),
            sequence.take_keys(numbers[:, some]),
            None if bias is None else bias[:, some],
        )
        for some in (slice(first, first + together) for first in range(0, tiles, together))
    ]


def _put(out: Tensor, numbers: Tensor, y: Tensor) -> None:
    """Write the tokens of each row where they were taken. (B, H, L, D), (t, n), (t, B·H, n, D)."""
    tokens = y.transpose(0, 1).flatten(1, 2).unflatten(0, out.shape[:2])  # (B, H, t·n, D)
    out.index_copy_(2, numbers.flatten(), tokens)
