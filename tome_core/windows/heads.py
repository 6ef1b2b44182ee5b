"""Attention in windows of some heads: one call of a kernel for each set of keys."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from einops import rearrange
from torch import Tensor

from ..attention.joining import join_parts
from ..attention.partial import PartialOutput, attend_part, find_masked
from ..constants import constant
from ..tokens import number_between, take_rows
from .drawn_keys import DrawnKeys
from .near_and_far_keys import TILES, KeySet
from .plan import WindowPlan, allows_merging
from .queries import MergedQueries


@dataclass(frozen=True)
class Heads:
    """What attention reads, and the heads that are computed.

    Args:
        q: (B, H, L, D).
        k, v: (B, G, L, D), with H heads or fewer, from ``lay_in_rows``.
        mask: added to the scores, (B or 1, H or 1, L or 1, L).
        scale: of the scores.
        some: the h heads of queries that are computed.
    """

    plan: WindowPlan
    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    scale: float
    some: range

    def attend_picture(self) -> Tensor:
        """Attention of the picture's queries. (B, h, N, D)"""
        plan, geometry = self.plan, self.plan.geometry
        queries = geometry.queries.flatten()
        rows = self.q[:, self.some.start : self.some.stop].index_select(2, queries)
        q = rows.unflatten(2, (*geometry.tiles, -1))  # (B, h, T, Y, X, Q, D), as tiles lie
        parts, weights = [self._attend_set(q, plan.near)], [plan.near.layout.weight]
        if plan.merged and allows_merging(self.mask):
            parts.append(self._attend_merged(plan.merged, rows))
            weights.append(1.0)
        else:
            parts += [self._attend_set(q, keys) for keys in plan.far]
            weights += [keys.layout.weight for keys in plan.far]
        if plan.of_others:
            out, lse = self._attend_all(rows, queries, geometry.others[None, None])
            parts.append((out.unflatten(2, q.shape[2:6]), lse.unflatten(2, q.shape[2:6])))
            weights.append(1.0)
        out, _ = join_parts(parts, weights)
        return out.flatten(2, 5).index_select(2, geometry.places)

    def _attend_merged(self, merged: MergedQueries, rows: Tensor) -> PartialOutput:
        """Attention of the queries that are kept to all far keys, for each query of the picture.

        rows: (B, h, T·Y·X·Q, D). Returns (B, h, T, Y, X, Q, D), and their lse.
        """
        sides = (*self.plan.geometry.tiles, -1)
        fewer, far = merged.merge(rows).unflatten(2, sides), self.plan.far
        weights = [keys.layout.weight for keys in far]
        out, logs = join_parts([self._attend_set(fewer, keys) for keys in far], weights)
        out, lse = (
            merged.unmerge(x.flatten(2, 5)).unflatten(2, sides)
            for x in (out, logs.logsumexp(dim=0)[..., None])
        )
        return out, lse[..., 0]

    def attend_others(self, keys: DrawnKeys) -> Tensor:
        """Attention of all other queries to each other, and to keys of the picture. (B, h, n, D)"""
        others = self.plan.geometry.others
        q = self.q[:, self.some.start : self.some.stop].index_select(2, others)
        parts = (
            self._attend_all(q, others, others[None, None]),
            self._attend_all(q, others, self._find_numbers(keys)),
        )
        out, _ = join_parts(parts, (1.0, keys.layout.weight))
        return out

    def _attend_set(self, q: Tensor, keys: DrawnKeys) -> PartialOutput:
        """Attention of the picture's queries to keys of the picture.

        Tiles with keys of their own are images of a batch. Those whose keys overlap are heads, and
        those that read the same keys are one long row of queries.

        q: (B, h, T, Y, X, Q, D). Returns outputs of this shape, and their lse.
        """
        of = keys.layout.of
        tiles = self.plan.geometry.tiles[of.sliding_axis]
        numbers = self._find_numbers(keys)  # (h, R, n)
        k, v = (
            keys.view_windows(x.flatten(0, 2), tiles) for x in self._take_keys(numbers)
        )  # (B·h·R, tiles, keys_read, D)
        bias = None
        if self.mask is not None:
            queries = self.plan.geometry.queries.view(1, 1, *self.plan.geometry.tiles, -1)
            read = keys.view_windows(numbers[..., None], tiles)  # (h, R, tiles, keys_read, 1)
            bias = self._take_mask(arrange_tiles(queries, of), read[..., 0])
        out, lse = attend_part(arrange_tiles(q, of), k, v, bias, self.scale)
        return restore_tiles(out, q.shape, of), restore_tiles(lse, q.shape, of)

    def _attend_all(self, q: Tensor, queries: Tensor, numbers: Tensor) -> PartialOutput:
        """All queries read the same keys.

        q: (B, h, n, D). queries: (n,) int64. numbers: (h or 1, 1, m) int32 or int64, of keys.
        """
        k, v = (x.flatten(2, 3) for x in self._take_keys(numbers))
        bias = None
        if self.mask is not None:
            bias = self._take_mask(queries[None, None], numbers[:, None])  # (B·h, 1, n or 1, m)
            bias = bias.view(*q.shape[:2], *bias.shape[2:])
        return attend_part(q, k, v, bias, self.scale)

    def _find_numbers(self, keys: DrawnKeys) -> Tensor:
        """The keys that each head reads, one draw after the other. (h or 1, R, n) int32."""
        draws = len(keys.numbers)
        first = self.some.start % draws
        if draws == 1 or first + len(self.some) <= draws:
            return keys.numbers[first : first + len(self.some)]  # without a copy
        heads = number_between(self.some.start, self.some.stop, keys.numbers.device)
        return keys.numbers.index_select(0, heads % draws)

    def _take_keys(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values. numbers: (h or 1, R, n) integers. Returns (B, h, R, n, D) of each."""
        rows = self._number_rows(self.k, numbers)
        alike = self.k.shape == self.v.shape and self.k.stride() == self.v.stride()
        rows_of_values = rows if alike else self._number_rows(self.v, numbers)
        return take_rows(self.k, rows), take_rows(self.v, rows_of_values)

    def _number_rows(self, x: Tensor, numbers: Tensor) -> Tensor:
        """Where tokens lie in memory, see ``take_rows``. (h or 1, R, n) -> (B, h, R, n)."""
        repeats = self.q.shape[1] // x.shape[1]
        image, head, token = (side // x.shape[3] for side in x.stride()[:3])
        first = _number_first_rows(len(x), image, self.some, repeats, head, x.device)
        return torch.add(first, numbers, alpha=token)

    def _take_mask(self, queries: Tensor, keys: Tensor) -> Tensor:
        """What is added to the scores.

        queries: (R, t, Q) int64. keys: (h or 1, R, t, n) integers. Returns (B·h·R, t, Q or 1, n).
        """
        assert self.mask is not None
        images, heads = self.q.shape[:2]
        mask = self.mask.expand(images, heads, -1, -1)  # (B, H, L or 1, L)
        rows = queries if mask.shape[2] > 1 else torch.zeros_like(queries[..., :1])
        head = number_between(self.some.start, self.some.stop, mask.device).view(-1, 1, 1, 1, 1)
        taken = mask[:, head, rows[..., None], keys.long()[..., None, :]]  # (B, h, R, t, Q or 1, n)
        # Finite: a part whose keys are all hidden must still give numbers.
        return taken.flatten(0, 2).clamp(min=find_masked(mask.dtype))


@constant
def _number_first_rows(
    images: int, image: int, some: range, repeats: int, head: int, device: torch.device
) -> Tensor:
    """Where the first token of each image and head lies in memory. (B, h, 1, 1) int64.

    image, head: rows from one to the next. repeats: heads of queries that read one of keys.
    """
    heads = torch.arange(some.start, some.stop, device=device) // repeats
    first = torch.arange(images, device=device)[:, None] * image + heads * head
    return first[..., None, None]


def arrange_tiles(x: Tensor, of: KeySet) -> Tensor:
    """Tiles as the set's keys are read. (B, h, T, Y, X, Q, ...) -> (B·h·R, tiles, Q', ...)."""
    return rearrange(x, f"{TILES} -> {of.pattern}")


def restore_tiles(x: Tensor, shape: torch.Size, of: KeySet) -> Tensor:
    """The way back. shape: (B, h, T, Y, X, Q, ...)."""
    sides = dict(zip("bhtyx", shape[:5], strict=True))
    return rearrange(x, f"{of.pattern} -> {TILES}", **sides)
