"""Attention within one sequence, row by row: some of its queries read some of its keys."""

from __future__ import annotations

from dataclasses import dataclass

from einops import rearrange
from torch import Tensor

from .attention_kernels import Part, attend_part, find_masked
from .tokens import number_between, take_for_heads


@dataclass(frozen=True)
class Queries:
    """Those of each row. numbers: (t, Q) int64. q: (t, B·H, Q, D)."""

    numbers: Tensor
    q: Tensor

    def take(self, rows: slice) -> Queries:
        return Queries(self.numbers[rows], self.q[rows])

    def join(self) -> Queries:
        """All rows as one."""
        return Queries(self.numbers.view(1, -1), rearrange(self.q, "t h q d -> 1 h (t q) d"))


@dataclass(frozen=True)
class Keys:
    """Those of each row. numbers: (H or 1, t or 1, n) int64. k, v: (t or 1, B·H, n, D)."""

    numbers: Tensor
    k: Tensor
    v: Tensor

    def narrow(self, start: int, end: int) -> Keys:
        """Some keys of each row, views."""
        some = slice(start, end)
        return Keys(self.numbers[:, :, some], self.k[:, :, some], self.v[:, :, some])


@dataclass(frozen=True)
class Sequence:
    """What attention reads. Rows become images of a batch, and images become heads.

    Args:
        q: (B, H, L, D).
        k, v: (B, G, L, D), with H heads or fewer.
        mask: added to the scores, (B or 1, H or 1, L or 1, L).
        scale: of the scores.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    scale: float

    @property
    def length(self) -> int:
        return self.q.shape[2]

    def take_keys(self, numbers: Tensor) -> Keys:
        """numbers: (G or 1, t, n) int64."""
        k, v = (self._repeat(_take(x, numbers), 1) for x in (self.k, self.v))
        return Keys(self._repeat_of_heads(numbers), k, v)

    def take_queries(self, numbers: Tensor) -> Queries:
        """numbers: (t, Q) int64."""
        return Queries(numbers, _take(self.q, numbers[None]))

    def attend(self, queries: Queries, keys: Keys, bias: Tensor | None) -> Part:
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
