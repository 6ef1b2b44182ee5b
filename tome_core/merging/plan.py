"""Plans of merged tokens: each token goes to a slot, which becomes one key or one query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from ..grid import Stream
from ..tokens import join_heads, number_between, number_rows, split_heads, take_tokens


class SlotPlan(ABC):
    """Token n of image b goes to slot ``assign[b, n]``; every slot holds at least one token.

    It has a way back, so it also serves queries and the tokens of the MLP. Slots are numbered along
    one fixed random order of the tokens. So a block of slots is a random query group. If rounding
    changes which token is merged, later slots move by one, and few queries change their group.
    ``MergePlan`` is the form in PyTorch; a kernel may bring its own.

    assign: (B, N) int64 in [0, M). Seen as (B, H, W) it is the token map.
    rows: (B·N,) int64, the same slots counted through the whole batch.
    chosen: (B, M) int64, the token that stands for each slot: its dst, or the one it holds.
    sizes: (B, M) int64, tokens of each slot.
    """

    assign: Tensor
    rows: Tensor
    chosen: Tensor
    sizes: Tensor

    groups = 1

    @property
    def keys_read(self) -> int:
        return self.chosen.shape[1]

    @property
    def queries_kept(self) -> int:
        """M, the queries that attention computes."""
        return self.chosen.shape[1]

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(B, N) of the tokens that it merges."""

    def choose(self, x: Tensor) -> Tensor:
        return take_tokens(x, self.chosen)

    @abstractmethod
    def merge(self, x: Tensor) -> Tensor:
        """The mean of each slot, ToMe (arXiv 2210.09461) sec. 3. (B, N, C) -> (B, M, C)."""

    def unmerge(self, y: Tensor) -> Tensor:
        """Give each token its slot's value. (B, M, C) -> (B, N, C)."""
        if y.ndim == 4:
            return take_tokens(y, self.assign)
        return y.flatten(0, 1).index_select(0, self.rows).unflatten(0, self.shape)

    @abstractmethod
    def extend(self, stream: Stream) -> SlotPlan:
        """The plan of a whole stream, whose picture this plan is of."""


@dataclass(frozen=True)
class MergePlan(SlotPlan):
    """A plan that is given as the slot of each token."""

    assign: Tensor
    chosen: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.assign.shape[0], self.assign.shape[1]

    @cached_property
    def rows(self) -> Tensor:  # type: ignore[override]
        return number_rows(self.assign, self.keys_read)

    @cached_property
    def sizes(self) -> Tensor:  # type: ignore[override]
        return self._segments[1].diff().view_as(self.chosen)

    @cached_property
    def _segments(self) -> tuple[Tensor, Tensor]:
        """The batch's rows sorted by slot, (B·N,), and where each slot begins and the last one
        ends, (B·M + 1,). int64.
        """
        # A GPU sorts numbers of 32 bits in half as many passes.
        slots, order = self.rows.int().sort(stable=True)
        bounds = number_between(0, self.chosen.numel() + 1, slots.device, slots.dtype)
        return order, torch.searchsorted(slots, bounds)

    def merge(self, x: Tensor) -> Tensor:
        """One segment mean over sorted rows: deterministic on every device, unlike scattering with
        atomic adds, and accumulated in float32 for half-precision tokens.
        """
        if x.ndim == 4:
            return split_heads(self.merge(join_heads(x)), x.shape[1])
        rows = x.flatten(0, 1)  # (B·N, C)
        if not takes_means(x):
            merged = mean_by_index_add(rows, self.rows, self.sizes)
        else:
            order, bounds = self._segments
            merged = F.embedding_bag(
                order, rows, bounds, mode="mean", include_last_offset=True
            )  # (B·M, C)
        return merged.unflatten(0, self.chosen.shape)

    def extend(self, stream: Stream) -> MergePlan:
        length = stream.others + self.keys_read
        return MergePlan(
            stream.extend_numbers(self.assign, length),
            stream.extend_numbers(self.chosen, stream.length),
        )


def takes_means(x: Tensor) -> bool:
    """Whether ``embedding_bag`` gives means of tokens like these.

    Apple's GPUs have none. On a CPU it rounds the sum to the type of the tokens before it divides,
    and float16 holds no sum beyond 65504.
    """
    return x.device.type != "mps" and (x.device.type, x.dtype) != ("cpu", torch.float16)


def mean_by_index_add(rows: Tensor, slot_of_row: Tensor, counts: Tensor) -> Tensor:
    """Mean of the rows of each slot, where ``embedding_bag`` gives none.

    rows: (B·N, C). slot_of_row: (B·N,). counts: (B, M) rows of each slot. Returns (B·M, C).
    """
    total = rows.new_zeros(counts.numel(), rows.shape[1], dtype=torch.float32)  # (B·M, C)
    total.index_add_(0, slot_of_row, rows.float())
    return (total / counts.reshape(-1, 1)).to(rows.dtype)
