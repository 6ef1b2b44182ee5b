"""Random integers without a generator: a hash of who draws and of the number of the draw.

The hash is computed in int64 on the tensor's own device, so every device draws the same numbers,
no copy goes to it, and no random state is read or changed. What depends on the number of the draw
alone is computed once: on a GPU each operation costs a launch, however small it is.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor

from .constants import constant

_MULTIPLIERS = (-0x61C8864680B583EB, -0x6B2FB644ECCEEE15)
"""Both are odd, so multiplying by them modulo 2^64 is one to one. They are the increment and the
second multiplier of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
generators", 2014)."""


Identity = tuple[int | float | str, ...]
"""It says who draws."""


@dataclass(frozen=True)
class Draws:
    """Draws that depend on ``identity`` alone, such as (seed, layer).

    device: where the numbers are computed and used. index: how often the run drew before; what is
    drawn may cycle with it (see ``Cells.draw``).
    """

    identity: Identity
    device: torch.device
    index: int = 0

    @property
    def per_step(self) -> Draws:
        """Others for each index, which do not cycle."""
        return Draws((*self.identity, self.index), self.device)

    def hash_numbers(self, count: int) -> Tensor:
        """A hash of each number from 0 to ``count`` - 1. (count,) int64.

        The shifts in ``_scramble_numbers`` are arithmetic and not one to one; the first 2^23 hashes
        were compared, and no two are equal. The high bits are the best mixed. Multiplicative
        hashing with a random odd factor (Dietzfelbinger and others, "A reliable randomized
        algorithm for the closest-pair problem", 1997, sec. 2.2): one operation, however many
        numbers.
        """
        digest = hashlib.blake2b(repr(self.identity).encode(), digest_size=8).digest()
        factor = int.from_bytes(digest, "big", signed=True) | 1
        return _scramble_numbers(count, self.device) * factor

    def draw_below(self, most: Tensor) -> Tensor:
        """One number for each entry of ``most``, from 0 to that entry - 1. Same shape, int64.

        most: int64, from 1 to 2^31.
        """
        # The high half as a share of the range. A remainder of large int64 is wrong on Apple's
        # GPUs (PyTorch's issue 154171) and slow on others.
        halves = self.hash_numbers(most.numel()).view(torch.int32)  # low, high, low, ...
        high = halves[1::2].view(most.shape)  # from -2^31 on
        return torch.add(high * most, most, alpha=2**31) >> 32

    def draw_order(self, count: int) -> Tensor:
        """The numbers from 0 to ``count`` - 1 in random order. (count,) int64."""
        return self.hash_numbers(count).argsort()


@constant
def _scramble_numbers(count: int, device: torch.device) -> Tensor:
    """A hash of each number from 0 to ``count`` - 1, the same for all draws. (count,) int64."""
    first, second = _MULTIPLIERS
    x = torch.arange(1, count + 1, device=device) * first
    x = (x ^ (x >> 31)) * second
    x = (x ^ (x >> 29)) * first
    return x ^ (x >> 32)
