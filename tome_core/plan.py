"""A plan: how the tokens of one layer become fewer, as index tensors.

Plans are data. They are made for a batch or for all batches (B is then 1), and every tensor that
they reduce is (B, N, C), or (B, H, N, D) where heads are split off.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from .streams import Stream
from .tokens import join_heads, number_rows, split_heads, take_tokens


class Plan(Protocol):
    """How N tokens become M slots."""

    @property
    def slots(self) -> int:
        """M, tokens that remain; of each query group where there are several."""

    @property
    def groups(self) -> int:
        """G, query groups with keys of their own; 1 where all queries read the same keys."""

    @property
    def chosen(self) -> Tensor:
        """The token that stands for each slot, (B or 1, M), or (G, M) of G groups. int64."""

    @property
    def sizes(self) -> Tensor | None:
        """Tokens that each slot stands for, (B or 1, M) int64; None where all are equal."""

    @property
    def window(self) -> None:
        """None: all queries read the same keys, or those of their group."""

    def choose(self, x: Tensor) -> Tensor:
        """The token that stands for each slot. (B, N, C) -> (B or B·G, M, C)."""

    def merge(self, x: Tensor) -> Tensor:
        """What the plan makes of each slot's tokens. (B, N, C) -> (B or B·G, M, C)."""


class MergingPlan(Plan, Protocol):
    """A plan with a way back: it also serves queries and the tokens of the MLP.

    Slots with neighbouring numbers are seldom neighbours in the picture, so query groups are blocks
    of slots. A token that is merged elsewhere moves few slots to another block: else rounding
    would change the keys of many queries.
    """

    @property
    def queries_left(self) -> int:
        """Queries that remain: M."""

    @property
    def shape(self) -> tuple[int, int]:
        """(B, N) of the tokens that it merges."""

    def unmerge(self, y: Tensor) -> Tensor:
        """Give each token its slot's value. (B, M, C) -> (B, N, C)."""


class PicturePlan(MergingPlan, Protocol):
    """A plan of the picture's tokens."""

    def extend(self, stream: Stream) -> MergingPlan:
        """The plan of a whole stream, whose picture this plan is of."""


@dataclass(frozen=True)
class Skipped:
    """Nothing is reduced. reason: why, as the user reads it."""

    reason: str


@dataclass(frozen=True)
class MergePlan:
    """Token n of image b goes to slot ``assign[b, n]``; every slot holds at least one token.

    assign: (B, N) int64 in [0, M). Seen as (B, H, W) it is the token map.
    chosen: (B, M) int64, the token that stands for each slot: its dst, or the one it holds.
    """

    assign: Tensor
    chosen: Tensor

    groups = 1
    window = None

    @property
    def slots(self) -> int:
        return self.chosen.shape[1]

    @property
    def queries_left(self) -> int:
        return self.slots

    @property
    def shape(self) -> tuple[int, int]:
        return self.assign.shape[0], self.assign.shape[1]

    @cached_property
    def sizes(self) -> Tensor:
        return self._segments[1].diff().view_as(self.chosen)

    @cached_property
    def _slot_rows(self) -> Tensor:
        """The slot of each token, as a row of the whole batch. (B·N,) int64."""
        return number_rows(self.assign, self.slots)

    @cached_property
    def _segments(self) -> tuple[Tensor, Tensor]:
        """The batch's rows sorted by slot, (B·N,), and where each slot begins and the last one
        ends, (B·M + 1,). int64.
        """
        # A GPU sorts numbers of 32 bits in half as many passes.
        slots, order = self._slot_rows.int().sort(stable=True)
        return order, torch.searchsorted(slots, _number_bounds(self.chosen.numel(), slots.device))

    def choose(self, x: Tensor) -> Tensor:
        return take_tokens(x, self.chosen)

    def merge(self, x: Tensor) -> Tensor:
        """Mean of each slot, ToMe (arXiv 2210.09461) sec. 3.

        One segment mean over sorted rows: deterministic on every device, unlike scattering with
        atomic adds, and accumulated in float32 for half-precision tokens.
        """
        if x.ndim == 4:
            return split_heads(self.merge(join_heads(x)), x.shape[1])
        rows = x.flatten(0, 1)  # (B·N, C)
        if not takes_means(x):
            merged = mean_by_index_add(rows, self._slot_rows, self.sizes)
        else:
            order, bounds = self._segments
            merged = F.embedding_bag(
                order, rows, bounds, mode="mean", include_last_offset=True
            )  # (B·M, C)
        return merged.unflatten(0, self.chosen.shape)

    def unmerge(self, y: Tensor) -> Tensor:
        if y.ndim == 4:
            return take_tokens(y, self.assign)
        return y.flatten(0, 1).index_select(0, self._slot_rows).unflatten(0, self.shape)

    def extend(self, stream: Stream) -> MergePlan:
        length = stream.others + self.slots
        return MergePlan(
            stream.extend_numbers(self.assign, length),
            stream.extend_numbers(self.chosen, stream.length),
        )


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def _number_bounds(slots: int, device: torch.device) -> Tensor:
    """The numbers from 0 to ``slots``. (slots + 1,) int32."""
    return torch.arange(slots + 1, dtype=torch.int32, device=device)


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
