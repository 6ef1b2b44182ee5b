"""The one table of what our kernels are compiled as, by GPU.

A block must leave room for a second one on a multiprocessor, which has 100 KiB of shared memory on
GeForce. benchmarks/speed/results/kernel.md has what was found in the compiled code; only the H100
and the H200 were measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from ...tome_core.gpus import OF_GEFORCE, find_capability, is_geforce
from ...tome_core.layer import Precision

WIDE_PRODUCTS = (9, 10)
"""GPUs of these major compute capabilities, the H100 and the B200 among them, have instructions for
products of 64 × 128 numbers by four warps. For others Triton divides such a product, where it takes
what another product gives, along the keys: then warps wait for each other nine times or more in
each block."""

UNIT = 8
"""Strides are handed to kernels as multiples of so many numbers, where they are: 16 bytes can then
be loaded at once. Triton finds out by itself only whether a stride can be divided by 16."""


@dataclass(frozen=True)
class Shape:
    """How an attention kernel is compiled.

    Args:
        queries, keys: of a block.
        stages: so many blocks of keys are on their way from memory at once.
        warps: of a block.
        parts: into which the channels of values are split, each with a product of its own.
        half_sums: whether the values of a block are summed in half precision, before they are added
            to sums of single precision. On GeForce this is twice as fast. Other cards of the same
            capabilities do so with INT8, where sums of single precision take too many registers.
    """

    queries: int = 64
    keys: int = 64
    stages: int = 2
    warps: int = 4
    parts: int = 1
    half_sums: bool = False


OF_TILES, OF_ALL = Shape(), Shape(stages=3)
"""Tiles share keys, which come from memory out of order; or all queries read all keys. Both are the
fastest of several choices on an H100."""

IN_HALVES, IN_HALVES_OF_INT8 = Shape(keys=32, stages=3, parts=2), Shape(parts=2)
"""With 64 keys and two stages there are fewer instructions for each key, but Triton 3.6 spills
registers where keys are of half precision."""


def choose_shape(
    device: torch.device,
    channels: int,
    in_order: bool = False,
    precision: Precision = "exact",
) -> Shape:
    """How an attention kernel is compiled for heads of so many channels.

    in_order: whether all queries read all keys.
    """
    rounds = precision == "int8"
    half_sums = is_geforce(device) or (rounds and find_capability(device) in OF_GEFORCE)
    shape = OF_ALL if in_order else OF_TILES
    if channels > Shape.queries and not _has_wide_products(device):
        shape = IN_HALVES_OF_INT8 if rounds else IN_HALVES
    return replace(shape, half_sums=half_sums)


MATCHED_TOKENS, MATCHED_CHANNELS = 128, 64
"""The kernel that compares tokens takes blocks of so many tokens and channels."""


def choose_dst_block(device: torch.device) -> int:
    """With how many dst tokens that kernel compares a block of tokens at once.

    128 are the fastest of twelve choices on an H200. On other GPUs they take 64 KiB and spill
    registers.
    """
    return 128 if _has_wide_products(device) else 64


def _has_wide_products(device: torch.device) -> bool:
    return find_capability(device)[0] in WIDE_PRODUCTS


def count_in_units(*strides: int) -> tuple[int, list[int]]:
    """The unit that all of these can be divided by, and how many of it each of them is."""
    unit = 1 if any(stride % UNIT for stride in strides) else UNIT
    return unit, [stride // unit for stride in strides]
