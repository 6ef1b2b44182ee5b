"""Attention with local windows: near keys exact, far keys drawn."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from .local_window import WindowPlan
from .partial_attention import Part, attend_part, join_parts

SHARE = 0.5
"""Tiles are computed together as long as their copies take at most this share of the queries."""


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
    stream, window = plan.stream, plan.window
    queries = window.queries + stream.before  # (T, Q)
    near = window.near + stream.before  # (T, K)
    at_once = _count_tiles(stream.length, queries.shape[1], near.shape[1])
    out = q.new_empty(*q.shape[:3], v.shape[3])
    for kept, dealt in zip(plan.kept, plan.deal_tiles(), strict=True):
        far = sequence.take_keys(stream.extend_numbers(kept[None], stream.length))
        for tiles in dealt.split(at_once):
            own = queries[tiles]
            beyond = sequence.attend(own, far, plan.weigh_beyond(tiles, kept))
            within = sequence.attend(own, sequence.take_keys(near[tiles]), None)
            _put(out, own, join_parts(beyond, within))
    if stream.others:
        others = stream.number_others(q.device)[None]
        read = sequence.take_keys(stream.extend_numbers(plan.kept[:1], stream.length))
        _put(out, others, sequence.attend(others, read, plan.weights)[0])
    return out


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

    def attend(self, queries: Tensor, keys: _Keys, bias: Tensor | None) -> Part:
        """Attention of each row's queries to its keys.

        queries: (t, Q) int64. bias: (t or 1, n). Returns outputs (t, B·H, Q, D) and their lse.
        """
        rows = len(queries), -1, -1, -1
        scores = None if bias is None else bias[:, None, None]  # (t or 1, 1, 1, n)
        if self.mask is not None:
            masked = self._take_mask(self.mask, queries, keys.numbers)
            scores = masked if scores is None else masked + scores
        q = _take(self.q, queries)
        return attend_part(q, keys.k.expand(rows), keys.v.expand(rows), scores, self.scale)

    def _take_mask(self, mask: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        """(t, Q), (t or 1, n) -> (t, B·H, Q or 1, n)."""
        mask = mask.expand(*self.q.shape[:2], -1, -1)  # (B, H, L or 1, L)
        rows = queries if mask.shape[2] > 1 else queries.new_zeros(len(queries), 1)
        taken = mask[:, :, rows[:, :, None], keys[:, None]]  # (B, H, t, Q or 1, n)
        return taken.flatten(0, 1).movedim(0, 1)


def _count_tiles(length: int, queries: int, near: int) -> int:
    """Tiles that are computed together, at least one.

    Copies of a tile: its queries, two outputs and their mean, and keys and values of its box.
    """
    return max(1, int(SHARE * length / (4 * queries + 2 * near)))


def _take(x: Tensor, numbers: Tensor) -> Tensor:
    """Tokens of each row. (B, H, L, D), (t, n) -> (t, B·H, n, D)."""
    taken = x.index_select(2, numbers.flatten()).flatten(0, 1)  # (B·H, t·n, D)
    return taken.unflatten(1, numbers.shape).transpose(0, 1)


def _put(out: Tensor, numbers: Tensor, y: Tensor) -> None:
    """Write what ``_take`` would take. (B, H, L, D), (t, n), (t, B·H, n, D)."""
    tokens = y.transpose(0, 1).flatten(1, 2).unflatten(0, out.shape[:2])  # (B, H, t·n, D)
    out.index_copy_(2, numbers.flatten(), tokens)
