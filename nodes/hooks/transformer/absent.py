"""Self-attention in which some tokens are keys alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Absent:
    """How many tokens at each end of a sequence are keys and no queries.

    Plans are of a whole sequence, so zeros stand for the queries that are absent. There are few:
    such models have the prompt's tokens computed once, or compute none for them.
    """

    before: int = 0
    after: int = 0

    @property
    def tokens(self) -> int:
        return self.before + self.after

    def fill(self, q: Tensor) -> Tensor:
        """Zeros for the queries that are absent. (..., Q, C) -> (..., N, C)."""
        return F.pad(q, (0, 0, self.before, self.after)) if self.tokens else q

    def drop(self, out: Tensor) -> Tensor:
        """What attention gave for the other queries. (..., N, C) -> (..., Q, C)."""
        return out.narrow(-2, self.before, out.shape[-2] - self.tokens) if self.tokens else out
