"""Attention with local windows: near keys exact, far keys drawn."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from einops import rearrange
from torch import Tensor

from .local_window import WindowPlan
from .partial_attention import Part, attend_part, find_masked, join_parts

FAR_QUERIES = 1024
"""Queries that read far keys in one call on a CPU, whose kernel is slow with few queries: PyTorch's
reads the keys once for 256 queries where there are 768 or more, else once for 32."""

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

    Each draw of kept keys is gathered once, for all tiles that read it. The keys of the boxes are
    gathered a few tiles at a time, so that their copies never lie in memory all together.
    """
    sequence = _Sequence(q, k, v, mask, scale)
    window, draws = plan.window, len(plan.kept)
    boxes = max(1, int(SHARE * q.shape[2] / (window.queries.shape[1] + 2 * window.near.shape[1])))
    attend_far = _attend_together if q.device.type == "cpu" else _attend_tile_by_tile
    tiles_of = plan.deal_tiles()
    queries_of = window.queries.index_select(0, plan.order).tensor_split(draws)  # (t, Q) each
    near_of = window.near.index_select(0, plan.order).tensor_split(draws)  # (t, K) each
    out = q.new_empty(*q.shape[:3], v.shape[3])
    for draw in range(draws):
        far = sequence.take_keys(plan.numbers[draw, None])
        if draw == 0 and len(window.others):
            others = sequence.take_queries(window.others[None])
            _put(out, others.numbers, sequence.attend(others, far, plan.weigh(q.dtype)[None])[0])
        queries, near = sequence.take_queries(queries_of[draw]), near_of[draw]
        bias = plan.weigh_beyond(draw, tiles_of[draw], q.dtype)
        beyond = attend_far(sequence, queries, far, bias)
        for first in range(0, len(near), boxes):
            some = slice(first, first + boxes)
            within = sequence.attend(queries.take(some), sequence.take_keys(near[some]), None)
            join_parts((beyond[0][some], beyond[1][some]), within)
        _put(out, queries.numbers, beyond[0])
    return out


def _attend_tile_by_tile(sequence: _Sequence, queries: _Queries, far: _Keys, bias: Tensor) -> Part:
    """Attention of t tiles to the same keys, in one call with a row of the batch for each tile.

    bias: (t, n). Returns outputs (t, B·H, Q, D) and their lse.
    """
    return sequence.attend(queries, far, bias[:, None])


def _attend_together(sequence: _Sequence, queries: _Queries, far: _Keys, bias: Tensor) -> Part:
    """As ``_attend_tile_by_tile``, with many queries in one row."""
    tiles, size = queries.numbers.shape
    together = max(1, FAR_QUERIES // size)
    parts = []
    for first in range(0, tiles, together):
        which = slice(first, first + together)
        some = queries.take(which)
        rows = bias[which].repeat_interleave(size, 0)  # (t·Q, n)
        row = _Queries(some.numbers.view(1, -1), rearrange(some.q, "t h q d -> 1 h (t q) d"))
        out, lse = sequence.attend(row, far, rows[None])
        parts.append(
            (
                rearrange(out, "1 h (t q) d -> t h q d", q=size),
                rearrange(lse, "1 h (t q) -> t h q", q=size),
            )
        )
    outs, sums = zip(*parts, strict=True)
    return torch.cat(outs), torch.cat(sums)


@dataclass(frozen=True)
class _Queries:
    """numbers: (t, Q). q: (t, B·H, Q, D)."""

    numbers: Tensor
    q: Tensor

    def take(self, rows: slice) -> _Queries:
        return _Queries(self.numbers[rows], self.q[rows])


@dataclass(frozen=True)
class _Keys:
    """numbers: (t or 1, n). k, v: (t or 1, B·H, n, D)."""

    numbers: Tensor
    k: Tensor
    v: Tensor


@dataclass(frozen=True)
class _Sequence:
    """The arguments of ``attend_windows``. Tiles become rows of a batch, images become heads."""

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    scale: float

    def take_keys(self, numbers: Tensor) -> _Keys:
        """numbers: (t, n) int64."""
        repeats = self.q.shape[1] // self.k.shape[1]
        k, v = (
            _take(x, numbers).repeat_interleave(repeats, 1) if repeats > 1 else _take(x, numbers)
            for x in (self.k, self.v)
        )
        return _Keys(numbers, k, v)

    def take_queries(self, numbers: Tensor) -> _Queries:
        """numbers: (t, Q) int64."""
        return _Queries(numbers, _take(self.q, numbers))

    def attend(self, queries: _Queries, keys: _Keys, bias: Tensor | None) -> Part:
        """Attention of each row's queries to its keys.

        bias: (t or 1, Q or 1, n). Returns outputs (t, B·H, Q, D) and their lse.
        """
        rows = len(queries.numbers), -1, -1, -1
        scores = None if bias is None else bias[:, None]  # (t or 1, 1, Q or 1, n)
        if self.mask is not None:
            masked = self._take_mask(self.mask, queries.numbers, keys.numbers)
            scores = masked if scores is None else masked + scores
            # Finite: a part whose keys are all hidden must still give numbers.
            scores = scores.clamp(min=find_masked(scores.dtype))
        return attend_part(queries.q, keys.k.expand(rows), keys.v.expand(rows), scores, self.scale)

    def _take_mask(self, mask: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        """(t, Q), (t or 1, n) -> (t, B·H, Q or 1, n)."""
        mask = mask.expand(*self.q.shape[:2], -1, -1)  # (B, H, L or 1, L)
        rows = queries if mask.shape[2] > 1 else queries.new_zeros(len(queries), 1)
        taken = mask[:, :, rows[:, :, None], keys[:, None]]  # (B, H, t, Q or 1, n)
        return taken.flatten(0, 1).movedim(0, 1)


def _take(x: Tensor, numbers: Tensor) -> Tensor:
    """Tokens of each row. (B, H, L, D), (t, n) -> (t, B·H, n, D)."""
    taken = x.index_select(2, numbers.flatten()).flatten(0, 1)  # (B·H, t·n, D)
    return taken.unflatten(1, numbers.shape).transpose(0, 1)


def _put(out: Tensor, numbers: Tensor, y: Tensor) -> None:
    """Write what ``_take`` would take. (B, H, L, D), (t, n), (t, B·H, n, D)."""
    tokens = y.transpose(0, 1).flatten(1, 2).unflatten(0, out.shape[:2])  # (B, H, t·n, D)
    out.index_copy_(2, numbers.flatten(), tokens)
