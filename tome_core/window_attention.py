"""Attention with local windows: near keys exact, far keys drawn."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from .local_window import WindowPlan
from .partial_attention import Part, attend_part, join_parts

FAR_QUERIES = 1024
"""Queries that read far keys in one call. Kernels are slow with few queries: PyTorch's on a CPU
reads the keys once for 256 queries where there are 768 or more, else once for 32."""

SHARE = 0.25
"""Boxes are read together as long as their copies take at most this share of the queries."""


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
    size = queries.shape[1]
    boxes = max(1, int(SHARE * stream.length / (3 * size + 2 * near.shape[1])))
    out = q.new_empty(*q.shape[:3], v.shape[3])
    for draw, (kept, dealt) in enumerate(zip(plan.kept, plan.deal_tiles(), strict=True)):
        far = sequence.take_keys(stream.extend_numbers(kept[None], stream.length))
        if draw == 0 and stream.others:
            others = stream.number_others(q.device)[None]
            _put(out, others, sequence.attend(others, far, plan.weights[None])[0])
        for tiles in dealt.split(max(1, FAR_QUERIES // size)):
            bias = plan.weigh_beyond(tiles, kept).repeat_interleave(size, 0)  # (t·Q, M + others)
            beyond = sequence.attend(queries[tiles].view(1, -1), far, bias[None])
            parts = zip(*(part.split(boxes * size, 2) for part in beyond), strict=True)
            for some, part in zip(tiles.split(boxes), parts, strict=True):
                own = queries[some]
                within = sequence.attend(own, sequence.take_keys(near[some]), None)
                _put(out, own, join_parts(_split_tiles(part, len(own)), within))
    return out


def _split_tiles(part: tuple[Tensor, ...], tiles: int) -> Part:
    """(1, B·H, t·Q, ...) -> (t, B·H, Q, ...)."""
    out, lse = (x[0].unflatten(1, (tiles, -1)).transpose(0, 1) for x in part)
    return out, lse


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

        queries: (t, Q) int64. bias: (t or 1, Q or 1, n). Returns outputs (t, B·H, Q, D) and their
        lse.
        """
        rows = len(queries), -1, -1, -1
        scores = None if bias is None else bias[:, None]  # (t or 1, 1, Q or 1, n)
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


def _take(x: Tensor, numbers: Tensor) -> Tensor:
    """Tokens of each row. (B, H, L, D), (t, n) -> (t, B·H, n, D)."""
    taken = x.index_select(2, numbers.flatten()).flatten(0, 1)  # (B·H, t·n, D)
    return taken.unflatten(1, numbers.shape).transpose(0, 1)


def _put(out: Tensor, numbers: Tensor, y: Tensor) -> None:
    """Write what ``_take`` would take. (B, H, L, D), (t, n), (t, B·H, n, D)."""
    tokens = y.transpose(0, 1).flatten(1, 2).unflatten(0, out.shape[:2])  # (B, H, t·n, D)
    out.index_copy_(2, numbers.flatten(), tokens)
