"""What plans are: how the tokens of one layer become fewer, as index tensors.

Plans are data. They are made for a batch or for all batches (B is then 1), and every tensor that
they reduce is (B, N, C), or (B, H, N, D) where heads are split off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor


class Plan(Protocol):
    """How N tokens become M keys."""

    @property
    def keys_read(self) -> int:
        """M, the keys that each query reads, or each query group where there are several."""

    @property
    def groups(self) -> int:
        """G, query groups with keys of their own; 1 where all queries read the same keys."""

    @property
    def chosen(self) -> Tensor:
        """The token that stands for each key, (B or 1, M), or (G, M) of G groups. int64."""

    @property
    def sizes(self) -> Tensor | None:
        """Tokens that each key stands for, (B or 1, M) int64. None where all keys weigh alike, as
        in ToDo.
        """

    def choose(self, x: Tensor) -> Tensor:
        """The token that stands for each key. (B, N, C) -> (B or B·G, M, C)."""

    def merge(self, x: Tensor) -> Tensor:
        """What the plan makes of each key's tokens. (B, N, C) -> (B or B·G, M, C)."""


@dataclass(frozen=True)
class Skipped:
    """Nothing is reduced. reason: why, as the user reads it."""

    reason: str
