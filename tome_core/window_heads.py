"""Some heads of a sequence, its queries in tiles, and the kernel's call for each set of keys."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from .attention_kernels import Part, attend_part, find_masked
from .drawn_keys import DrawnKeys
from .key_sets import KeySet
from .tokens import number_between, take_rows
from .window_plan import WindowPlan


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

    def take_tiles(self) -> Tensor:
        """The picture's queries. (B, h, T, Y, X, Q, D), tiles along frames, rows and columns."""
        q = self._take_queries(self.plan.queries.flatten())
        return q.unflatten(2, (*self.plan.tiles, -1))

    def restore(self, out: Tensor) -> Tensor:
        """The tokens of the picture in order. (B, h, T, Y, X, Q, D) -> (B, h, N, D)."""
        return out.flatten(2, 5).index_select(2, self.plan.places)

    def merge(self, q: Tensor) -> Tensor:
        """The queries that remain. (B, h, T, Y, X, Q, D) -> (B, h, T, Y, X, M, D)."""
        assert self.plan.merged is not None
        return self.plan.merged.merge(q.flatten(2, 5)).unflatten(2, (*self.plan.tiles, -1))

    def unmerge(self, far: Part) -> Part:
        """Give each query what its slot has. Outputs (B, h, T, Y, X, M, D) and their lse."""
        assert self.plan.merged is not None
        out, lse = (
            self.plan.merged.unmerge(x.flatten(2, 5)).unflatten(2, (*self.plan.tiles, -1))
            for x in (far[0], far[1][..., None])
        )
        return out, lse[..., 0]

    def attend_to_set(self, q: Tensor, keys: DrawnKeys) -> Part:
        """Attention of the picture's queries to keys of the picture.

        Tiles with keys of their own are images of a batch. Those whose keys overlap are heads, and
        those that read the same keys are one long row of queries.

        q: (B, h, T, Y, X, Q, D). Returns outputs of this shape, and their lse.
        """
        tiles, of = self.plan.tiles[keys.of.windowed], keys.of
        numbers = self._find_numbers(keys)  # (h, R, n)
        k, v = (
            keys.view_windows(x.flatten(0, 2), tiles) for x in self._take_keys(numbers)
        )  # (B·h·R, tiles, window, D)
        bias = None
        if self.mask is not None:
            queries = self.plan.queries.view(1, 1, *self.plan.tiles, -1, 1)
            read = keys.view_windows(numbers[..., None], tiles)  # (h, R, tiles, window, 1)
            bias = self._take_mask(arrange_tiles(queries, of)[..., 0], read[..., 0])
        out, lse = attend_part(arrange_tiles(q, of), k, v, bias, self.scale)
        return restore_tiles(out, q.shape, of), restore_tiles(lse[..., None], q.shape, of)[..., 0]

    def attend_to_others(self, q: Tensor) -> Part:
        """Attention of the picture's queries to all tokens that are not of the picture.

        Shapes as ``attend_to_set``.
        """
        queries, others = self.plan.queries.flatten(), self.plan.others[None, None]
        out, lse = self._attend(q.flatten(2, 5), queries, others)
        return out.unflatten(2, q.shape[2:6]), lse.unflatten(2, q.shape[2:6])

    def attend_from_others(self, keys: DrawnKeys) -> tuple[Part, Part]:
        """Attention of all other queries to each other, and to keys of the picture.

        Returns outputs (B, h, n, D) and their lse.
        """
        others = self.plan.others
        q = self._take_queries(others)
        return (
            self._attend(q, others, others[None, None]),
            self._attend(q, others, self._find_numbers(keys)),
        )

    def _find_numbers(self, keys: DrawnKeys) -> Tensor:
        """The keys that each head reads, one draw after the other. (h or 1, R, n) int32."""
        draws = len(keys.numbers)
        first = self.some.start % draws
        if draws == 1 or first + len(self.some) <= draws:
            return keys.numbers[first : first + len(self.some)]  # without a copy
        return keys.numbers.index_select(0, self._number_heads(keys.numbers.device) % draws)

    def _number_heads(self, device: torch.device) -> Tensor:
        """(h,) int64."""
        return number_between(self.some.start, self.some.stop, device)

    def _attend(self, q: Tensor, queries: Tensor, numbers: Tensor) -> Part:
        """All queries read the same keys.

        q: (B, h, n, D). queries: (n,) int64. numbers: (h or 1, 1, m) int32 or int64, of keys.
        """
        k, v = (x.flatten(2, 3) for x in self._take_keys(numbers))
        bias = None
        if self.mask is not None:
            bias = self._take_mask(queries[None, None], numbers[:, None])  # (B·h, 1, n or 1, m)
            bias = bias.view(*q.shape[:2], *bias.shape[2:])
        return attend_part(q, k, v, bias, self.scale)

    def _take_queries(self, numbers: Tensor) -> Tensor:
        """(B, h, n, D)."""
        return self.q[:, self.some.start : self.some.stop].index_select(2, numbers)

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
        head = self._number_heads(mask.device).view(-1, 1, 1, 1, 1)
        taken = mask[:, head, rows[..., None], keys.long()[..., None, :]]  # (B, h, R, t, Q or 1, n)
        # Finite: a part whose keys are all hidden must still give numbers.
        return taken.flatten(0, 2).clamp(min=find_masked(mask.dtype))


@lru_cache(maxsize=64)
@torch.inference_mode(False)
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
    """Tiles as the set's keys are read. (B, h, T, Y, X, Q, D) -> (B·h·R, tiles, Q', D)."""
    arranged = x.permute(_order_axes(of))
    own = 2 + len(of.rows)
    return arranged.flatten(own + 1, 5).flatten(0, own - 1)


def restore_tiles(x: Tensor, shape: torch.Size, of: KeySet) -> Tensor:
    """The way back. shape: (B, h, T, Y, X, Q, ...)."""
    order = _order_axes(of)
    sides = [shape[each] for each in order[:-1]]
    own = 2 + len(of.rows)
    apart = x.unflatten(2, sides[own + 1 :]).unflatten(0, sides[:own])
    places = sorted(range(7), key=order.__getitem__)
    return apart.permute(places)


@lru_cache(maxsize=64)
def _order_axes(of: KeySet) -> tuple[int, ...]:
    """Of (B, h, T, Y, X, Q, D): rows of tiles, the windowed axis, and all other axes of tiles."""
    joined = (axis for axis in range(3) if axis not in (*of.rows, of.windowed))
    return (0, 1, *(2 + axis for axis in (*of.rows, of.windowed, *joined)), 5, 6)
