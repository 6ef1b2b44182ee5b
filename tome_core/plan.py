"""A merge plan: which tokens become one, as index tensors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class MergePlan:
    """Token n of image b goes to slot ``assign[b, n]``; every slot holds at least one token.

    assign: (B, N) int64 in [0, slots). Seen as (B, H, W) it is the token map.
    slots: M, tokens that remain.
    order: (B·N,) int64, rows of the flattened batch sorted by slot.
    starts: (B·M,) int64, where in ``order`` each slot begins.
    dst: (D,) int64, the destination tokens, in slots 0 to D - 1.
    """

    assign: Tensor
    slots: int
    order: Tensor
    starts: Tensor
    dst: Tensor

    @classmethod
    def from_assignment(cls, assign: Tensor, slots: int, dst: Tensor | None = None) -> MergePlan:
        """Plan of a given (B, N) assignment to ``slots`` slots, none of them empty.

        dst: the tokens that the first slots stand for; without, each slot's first token.
        """
        rows = _batched_rows(assign, slots)  # (B·N,)
        sorted_rows, order = rows.sort(stable=True)
        every_slot = torch.arange(assign.shape[0] * slots, device=assign.device)
        starts = torch.searchsorted(sorted_rows, every_slot)  # (B·M,)
        return cls(assign, slots, order, starts, assign.new_empty(0) if dst is None else dst)

    @property
    def shape(self) -> tuple[int, int]:
        """(B, N) of the tokens it merges."""
        return (self.assign.shape[0], self.assign.shape[1])

    @property
    def chosen(self) -> Tensor:
        """The token that stands for each slot where none may be averaged, (B, M) int64.

        A slot's destination, or the one token that it holds.
        """
        batch, tokens = self.assign.shape
        first = self.order[self.starts].unflatten(0, (batch, self.slots)) % tokens  # (B, M)
        return torch.cat([self.dst.expand(batch, -1), first[:, self.dst.numel() :]], dim=1)

    @property
    def sizes(self) -> Tensor:
        """Tokens in each slot, (B, M) int64."""
        ends = torch.cat([self.starts[1:], self.starts.new_full((1,), self.order.numel())])
        return (ends - self.starts).unflatten(0, (self.assign.shape[0], self.slots))

    def merge(self, x: Tensor) -> Tensor:
        """Mean per slot, ToMe (arXiv 2210.09461) sec. 3. (B, N, C) -> (B, M, C).

        One segment mean over sorted rows: deterministic on every device, unlike scattering with
        atomic adds, and accumulated in float32 for half-precision tokens.
        """
        rows = x.flatten(0, 1)  # (B·N, C)
        if x.device.type == "mps":
            merged = mean_by_index_add(rows, _batched_rows(self.assign, self.slots), self.sizes)
        else:
            merged = F.embedding_bag(self.order, rows, self.starts, mode="mean")  # (B·M, C)
        return merged.unflatten(0, (x.shape[0], self.slots))

    def choose(self, x: Tensor) -> Tensor:
        """The token that stands for each slot. (B, N, C) -> (B, M, C)."""
        return _take(x, self.chosen)

    def merge_weighted(self, x: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
        """Mean per slot, weighted by the tokens that each token already stands for.

        For merging what was merged before, ToMe (arXiv 2210.09461) sec. 3, "tracking token size".
        x: (B, N, C). sizes: (B, N). Returns (B, M, C) and the new sizes, (B, M).
        """
        total = self.merge(x * sizes[..., None]) * self.sizes[..., None]  # (B, M, C)
        merged_sizes = self.merge(sizes[..., None].to(x.dtype)).squeeze(-1) * self.sizes  # (B, M)
        return total / merged_sizes[..., None], merged_sizes

    def unmerge(self, y: Tensor) -> Tensor:
        """Copy each slot to its tokens. (B, M, C) -> (B, N, C)."""
        return _take(y, self.assign)


def mean_by_index_add(rows: Tensor, slot_rows: Tensor, sizes: Tensor) -> Tensor:
    """Mean of the rows of each slot, for devices without ``embedding_bag``.

    rows: (B·N, C). slot_rows: (B·N,) slot of each row. sizes: (B, M). Returns (B·M, C).
    """
    total = rows.new_zeros(sizes.numel(), rows.shape[1], dtype=torch.float32)  # (B·M, C)
    total.index_add_(0, slot_rows, rows.float())
    return (total / sizes.reshape(-1, 1)).to(rows.dtype)


def _take(x: Tensor, numbers: Tensor) -> Tensor:
    """Rows by number, image by image. x: (B, N, C). numbers: (B, n). Returns (B, n, C)."""
    rows = _batched_rows(numbers, x.shape[1])  # (B·n,)
    return x.flatten(0, 1).index_select(0, rows).unflatten(0, numbers.shape)


def _batched_rows(numbers: Tensor, of_each: int) -> Tensor:
    """Slots or tokens of all images numbered through. (B, n) -> (B·n,).

    of_each: how many an image has.
    """
    first = torch.arange(numbers.shape[0], device=numbers.device)[:, None] * of_each  # (B, 1)
    return (numbers + first).flatten()
