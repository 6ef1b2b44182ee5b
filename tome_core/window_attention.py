"""Attention with local windows: near keys exact, far keys drawn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from einops import rearrange
from torch import Tensor

from .attention_kernels import Part, attend_part, find_masked
from .partial_attention import exchange_keys, join_parts, weigh_part
from .tokens import number_between, take_for_heads
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
    sequence, window = _Sequence(q, k, v, mask, scale), plan.window
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
    sequence: _Sequence,
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


def _attend_drawn(sequence: _Sequence, plan: WindowPlan, draw: int, queries: _Queries) -> Part:
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
    sequence: _Sequence, queries: _Queries, numbers: Tensor, bias: Tensor | None
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


@dataclass(frozen=True)
class _Queries:
    """numbers: (t, Q). q: (t, B·H, Q, D)."""

    numbers: Tensor
    q: Tensor

    def take(self, rows: slice) -> _Queries:
        return _Queries(self.numbers[rows], self.q[rows])

    def join(self) -> _Queries:
        """All rows as one."""
        return _Queries(self.numbers.view(1, -1), rearrange(self.q, "t h q d -> 1 h (t q) d"))


@dataclass(frozen=True)
class _Keys:
    """numbers: (H or 1, t or 1, n). k, v: (t or 1, B·H, n, D)."""

    numbers: Tensor
    k: Tensor
    v: Tensor

    def narrow(self, start: int, end: int) -> _Keys:
        """Some keys of each row, views."""
        some = slice(start, end)
        return _Keys(self.numbers[:, :, some], self.k[:, :, some], self.v[:, :, some])


@dataclass(frozen=True)
class _Sequence:
    """The arguments of ``attend_windows``. Tiles become rows of a batch, images become heads."""

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    scale: float

    @property
    def length(self) -> int:
        return self.q.shape[2]

    def take_keys(self, numbers: Tensor) -> _Keys:
        """numbers: (G or 1, t, n) int64."""
        k, v = (self._repeat(_take(x, numbers), 1) for x in (self.k, self.v))
        return _Keys(self._repeat_of_heads(numbers), k, v)

    def take_queries(self, numbers: Tensor) -> _Queries:
        """numbers: (t, Q) int64."""
        return _Queries(numbers, _take(self.q, numbers[None]))

    def attend(self, queries: _Queries, keys: _Keys, bias: Tensor | None) -> Part:
        """Attention of each row's queries to its keys.

        bias: (G or 1, t, n). Returns outputs (t, B·H, Q, D) and their lse.
        """
        scores = None if bias is None else self._spread(self._repeat_of_heads(bias)[:, :, None])
        if self.mask is not None:
            masked = self._take_mask(self.mask, queries.numbers, keys.numbers)
            scores = masked if scores is None else masked + scores
            # Finite: a part whose keys are all hidden must still give numbers.
            scores = scores.clamp(min=find_masked(scores.dtype))
        return attend_part(queries.q, keys.k, keys.v, scores, self.scale)

    def _take_mask(self, mask: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        """(t, Q), (H or 1, t or 1, n) -> (t, B·H, Q or 1, n)."""
        images, heads = self.q.shape[:2]
        mask = mask.expand(images, heads, -1, -1)  # (B, H, L or 1, L)
        rows = queries if mask.shape[2] > 1 else queries.new_zeros(len(queries), 1)
        head = number_between(0, heads, mask.device).view(-1, 1, 1, 1)
        taken = mask[:, head, rows[:, :, None], keys[:, :, None]]  # (B, H, t, Q or 1, n)
        return taken.flatten(0, 1).movedim(0, 1)

    def _repeat(self, x: Tensor, dim: int) -> Tensor:
        """Each head of keys for all heads of queries that read it."""
        repeats = self.q.shape[1] // self.k.shape[1]
        return x.repeat_interleave(repeats, dim) if repeats > 1 else x

    def _repeat_of_heads(self, x: Tensor) -> Tensor:
        """As ``_repeat``, of what may be the same for all heads. (G or 1, ...) -> (H or 1, ...)."""
        return x if len(x) == 1 else self._repeat(x, 0)

    def _spread(self, x: Tensor) -> Tensor:
        """What is the same for all images. (H or 1, t, Q, n) -> (t, B·H or 1, Q, n)."""
        images = 1 if len(x) == 1 else len(self.q)
        return (x.repeat(images, 1, 1, 1) if images > 1 else x).transpose(0, 1)


def _take(x: Tensor, numbers: Tensor) -> Tensor:
    """Tokens of each row. (B, H, L, D), (H or 1, t, n) -> (t, B·H, n, D)."""
    if len(numbers) > 1:
        return take_for_heads(x, numbers).flatten(0, 1).transpose(0, 1)
    taken = x.index_select(2, numbers.flatten()).flatten(0, 1)  # (B·H, t·n, D)
    return taken.unflatten(1, numbers.shape[1:]).transpose(0, 1)


def _put(out: Tensor, numbers: Tensor, y: Tensor) -> None:
    """Write what ``_take`` would take. (B, H, L, D), (t, n), (t, B·H, n, D)."""
    tokens = y.transpose(0, 1).flatten(1, 2).unflatten(0, out.shape[:2])  # (B, H, t·n, D)
    out.index_copy_(2, numbers.flatten(), tokens)
