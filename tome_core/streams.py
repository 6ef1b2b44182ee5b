"""Sequences of transformers: a picture's tokens between text and reference tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from einops import rearrange
from torch import Tensor

from .downsample import DownsamplePlan
from .grid import TokenGrid
from .interleaving import InterleavedPlan, to_groups
from .plan import MergePlan


@dataclass(frozen=True)
class Stream:
    """``before`` tokens, a picture or video in raster order, ``after`` tokens."""

    before: int
    grid: TokenGrid
    after: int = 0

    @property
    def length(self) -> int:
        return self.before + self.grid.tokens + self.after

    def picture(self, x: Tensor) -> Tensor:
        """The picture's tokens. (B, H, L, D) -> (B, H, N, D), a view."""
        return x.narrow(2, self.before, self.grid.tokens)


@dataclass(frozen=True)
class StreamPlan:
    """A plan for the picture of a stream; the tokens before and after it stay whole.

    Queries and keys carry their positions (RoPE) by the time attention gets them, and the mean of
    two positions is none: a slot's destination stands for it. Values carry none and are averaged.
    All tensors are (B, H, L, D); H is 1 where heads are not split off. What comes out of an
    interleaved plan has a row for each of its G groups, B·G in all.
    """

    stream: Stream
    plan: MergePlan | DownsamplePlan | InterleavedPlan

    @property
    def groups(self) -> int:
        """G, 1 where the queries are in no groups."""
        return self.plan.groups if isinstance(self.plan, InterleavedPlan) else 1

    @property
    def length(self) -> int:
        """L', the tokens that remain."""
        return self.stream.length - self.stream.grid.tokens + self._slots

    @property
    def _slots(self) -> int:
        if isinstance(self.plan, MergePlan):
            return self.plan.slots
        return self.plan.smaller.tokens

    def rows(self, device: torch.device) -> Tensor:
        """The tokens that stand for those that remain, (B, 1 or G, L') int64."""
        chosen = self.plan.chosen.to(device, non_blocking=True)
        chosen = chosen.expand(1, -1) if chosen.ndim == 1 else chosen  # (B, 1 or G, M)
        return self._extended(chosen + self.stream.before, self.stream.length)

    def choose(self, x: Tensor) -> Tensor:
        """Queries or keys of the tokens that remain. (B, H, L, D) -> (B or B·G, H, L', D)."""
        if self.groups > 1:
            return to_groups(x, self.rows(x.device))
        return _take(x, self.rows(x.device))

    def merge(self, x: Tensor) -> Tensor:
        """Values of the tokens that remain. (B, H, L, D) -> (B or B·G, H, L', D)."""
        if isinstance(self.plan, InterleavedPlan):
            return self.choose(x)
        stream = self.stream
        tokens = rearrange(x, "b h n d -> b n (h d)")  # (B, L, H·D)
        before, picture, after = tokens.split([stream.before, stream.grid.tokens, stream.after], 1)
        kept = torch.cat([before, self.plan.merge(picture), after], dim=1)  # (B, L', H·D)
        return rearrange(kept, "b n (h d) -> b h n d", h=x.shape[1])

    def choose_keys_of_mask(self, mask: Tensor) -> Tensor:
        """A mask for the keys that remain. (..., L) -> (..., L').

        Of an interleaved plan (B or 1, H, Q, L) -> (B·G or G, H, Q, L').
        """
        if self.groups > 1:
            return to_groups(mask.mT, self.rows(mask.device)).mT
        return self._choose_of_mask(mask, -1)

    def choose_queries_of_mask(self, mask: Tensor) -> Tensor:
        """A mask for the queries that remain. (..., L, K) -> (..., L', K)."""
        return self._choose_of_mask(mask, -2)

    def _choose_of_mask(self, mask: Tensor, dim: int) -> Tensor:
        if mask.ndim < -dim or mask.shape[dim] == 1:
            return mask
        rows = self.rows(mask.device)  # (B or 1, L')
        if len(rows) == 1:
            return mask.index_select(dim, rows[0])
        mask = mask.expand(len(rows), *mask.shape[1:])
        shape = [len(rows), *[1] * (mask.ndim - 1)]
        shape[dim] = rows.shape[1]
        return mask.take_along_dim(rows.reshape(shape), dim)

    def unmerge(self, y: Tensor) -> Tensor:
        """Copy the outputs of merged queries to all tokens. (B, H, L', D) -> (B, H, L, D)."""
        if not isinstance(self.plan, MergePlan):
            raise TypeError("downsampling leaves every query whole: there is nothing to unmerge")
        return _take(y, self._extended(self.plan.assign + self.stream.before, self.length))

    @property
    def weighs_alike(self) -> bool:
        """True where every key stands for as many tokens: softmax then takes no notice."""
        alone = self.length == self._slots
        return alone and not isinstance(self.plan, MergePlan)

    def sizes(self, device: torch.device) -> Tensor:
        """Tokens that each key stands for, (B or 1, L') float32."""
        if isinstance(self.plan, MergePlan):
            sizes = self.plan.sizes.float()  # (B, M)
        else:
            share = self.stream.grid.tokens / self._slots
            sizes = torch.full((1, self._slots), share, device=device)
        before = sizes.new_ones(len(sizes), self.stream.before)
        return torch.cat([before, sizes, sizes.new_ones(len(sizes), self.stream.after)], dim=1)

    def _extended(self, rows: Tensor, length: int) -> Tensor:
        """Rows of the picture, and between them those of the other tokens as they stand.

        rows: (B or 1, n). length: of the sequence that rows are taken from.
        """
        before = torch.arange(self.stream.before, device=rows.device).expand(len(rows), -1)
        after = torch.arange(length - self.stream.after, length, device=rows.device)
        return torch.cat([before, rows, after.expand(len(rows), -1)], dim=1)


def _take(x: Tensor, rows: Tensor) -> Tensor:
    """Tokens by number. x: (B, H, L, D). rows: (B or 1, n). Returns (B, H, n, D)."""
    if len(rows) == 1:
        return x.index_select(2, rows[0])
    index = rows[:, None, :, None].expand(-1, x.shape[1], -1, x.shape[3])
    return x.gather(2, index)
