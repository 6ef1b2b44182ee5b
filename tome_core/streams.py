"""The sequence that attention reads: a picture's tokens, and those before and after them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from .grid import TokenGrid
from .tokens import number_between


@dataclass(frozen=True)
class Stream:
    """``before`` tokens, a picture or video in raster order, ``after`` tokens.

    A UNet's sequence is the picture alone. A transformer's also holds the prompt and references.
    """

    grid: TokenGrid
    before: int = 0
    after: int = 0

    @property
    def others(self) -> int:
        """The tokens that are not of the picture."""
        return self.before + self.after

    @property
    def length(self) -> int:
        return self.grid.tokens + self.others

    def take_picture(self, x: Tensor) -> Tensor:
        """The picture's tokens. (B, ..., L, C) -> (B, ..., N, C), a view."""
        return x.narrow(-2, self.before, self.grid.tokens)

    def extend_numbers(self, numbers: Tensor, length: int) -> Tensor:
        """Numbers within the picture, with those of the other tokens at both ends.

        numbers: (R, n) int64, counted from the first of the picture. length: of the whole sequence
        in which the result counts. Returns (R, before + n + after).
        """
        if not self.others:
            return numbers
        rows, device = len(numbers), numbers.device
        before = number_between(0, self.before, device).expand(rows, -1)
        after = number_between(length - self.after, length, device).expand(rows, -1)
        own = numbers + self.before if self.before else numbers
        return torch.cat([before, own, after], dim=1)

    def number_others(self, device: torch.device) -> Tensor:
        """The tokens that are not of the picture, (others,) int64."""
        return _number_others(self, device)

    def extend_sizes(self, sizes: Tensor) -> Tensor:
        """Sizes of the picture's slots, and 1 for each other token. (R, M) -> (R, M + others)."""
        before = sizes.new_ones(len(sizes), self.before)
        return torch.cat([before, sizes, sizes.new_ones(len(sizes), self.after)], dim=1)


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def _number_others(stream: Stream, device: torch.device) -> Tensor:
    first_after = stream.before + stream.grid.tokens
    before = number_between(0, stream.before, device)
    return torch.cat([before, number_between(first_after, stream.length, device)])
