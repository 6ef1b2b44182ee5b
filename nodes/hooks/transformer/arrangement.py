"""From the sequence of an attention call to the one that plans are of, and back.

Plans are of one query for each key, and of a picture whose tokens follow each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from ....tome_core.grid import TokenGrid
from ..attention.call import AttentionCall


class Arrangement(Protocol):
    """How the tokens of a call stand, where plans are of another order."""

    def count_queries(self, keys: int) -> int:
        """How many queries a call with this many keys has."""

    def arrange(self, call: AttentionCall) -> AttentionCall:
        """The call that plans are of."""

    def restore(self, out: Tensor) -> Tensor:
        """The output of that call, (..., N, C), as it is for the tokens that asked."""


@dataclass(frozen=True)
class KeysAlone:
    """Tokens at the ends of a sequence that are keys and no queries; as it is where there are none.

    Zeros stand for their queries. There are few: such models compute the prompt's tokens once, or
    not at all.
    """

    before: int = 0
    after: int = 0

    def count_queries(self, keys: int) -> int:
        return keys - self.before - self.after

    def arrange(self, call: AttentionCall) -> AttentionCall:
        ends = self.before, self.after
        return replace(call, q=F.pad(call.q, (0, 0, *ends))) if any(ends) else call

    def restore(self, out: Tensor) -> Tensor:
        queries = self.count_queries(out.shape[-2])
        return out if queries == out.shape[-2] else out.narrow(-2, self.before, queries)


@dataclass(frozen=True, eq=False)
class Interwoven:
    """Each row of the picture is followed by one of a reference.

    order: (N,) int64, the picture's tokens, then all others. places: (N,) int64, where each token
    is in ``order``.
    """

    order: Tensor
    places: Tensor

    @staticmethod
    def weave(grid: TokenGrid, beside: int, length: int, device: torch.device) -> Interwoven:
        """For rows that are prolonged by ``beside`` tokens, and other tokens behind them all."""
        tokens = torch.arange(length, device=device)
        rows = tokens[: grid.tokens // grid.width * (grid.width + beside)]
        picture, reference = rows.view(-1, grid.width + beside).split([grid.width, beside], dim=1)
        order = torch.cat([picture.flatten(), reference.flatten(), tokens[len(rows) :]])
        return Interwoven(order, torch.empty_like(order).scatter_(0, order, tokens))

    def count_queries(self, keys: int) -> int:
        return keys

    def arrange(self, call: AttentionCall) -> AttentionCall:
        q, k, v = (x.index_select(-2, self.order) for x in (call.q, call.k, call.v))
        mask = call.mask
        if mask is not None:
            mask = mask.index_select(-1, self.order)
            has_rows = mask.ndim > 1 and mask.shape[-2] > 1
            mask = mask.index_select(-2, self.order) if has_rows else mask
        return replace(call, q=q, k=k, v=v, mask=mask)

    def restore(self, out: Tensor) -> Tensor:
        return out.index_select(-2, self.places)
