"""Keys and values as our attention kernel reads them.

They are as they are; or keys are rounded to 8 bits, and values scaled for sums of half precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import torch
import triton
from torch import Tensor

from ...tome_core.windows.int8 import average_keys
from . import rounding_triton
from .shapes import Shape, count_in_units

LEAST_CHANNELS = 32
"""A product of 8 bits takes so many channels at once."""

ROWS = 64


@dataclass(frozen=True)
class KeysAndValues:
    """What attention reads, and what it needs where keys are rounded or values scaled.

    Args:
        k, v: (B, G, N, D), channels follow each other. Rounded keys are (B, G, N, P) int8, with
            zeros behind the D channels.
        steps: (B, G, N) float32, by which each key is to be multiplied.
        mean: (B, G, 1, D) float32, which was taken from the keys.
        largest: (B, G) float32, of the values; they are float16 in units then, see ``find_unit``.
    """

    k: Tensor
    v: Tensor
    steps: Tensor | None = None
    mean: Tensor | None = None
    largest: Tensor | None = None


def round_and_scale(k: Tensor, v: Tensor, shape: Shape, rounds: bool = False) -> KeysAndValues:
    """What a kernel of this shape reads of k and v, (B, G, N, D).

    By one kernel, after PyTorch's for the mean of keys and for the largest value; by none where
    both are read as they are. rounds: whether keys are rounded.
    """
    if not (rounds or shape.half_sums):
        return KeysAndValues(k, v)
    images, heads, tokens, channels = k.shape
    padded = max(LEAST_CHANNELS, triton.next_power_of_2(channels))
    numbers = steps = mean = scaled = largest = None
    if rounds:
        numbers = k.new_empty(images, heads, tokens, padded, dtype=torch.int8)
        steps = k.new_empty(images, heads, tokens, dtype=torch.float32)
        mean = average_keys(k).contiguous()
    if shape.half_sums:
        scaled = v.new_empty(v.shape, dtype=torch.float16)
        largest = torch.linalg.vector_norm(v, ord=inf, dim=(2, 3), dtype=torch.float32)
    unit, strides = count_in_units(*k.stride()[:3], *v.stride()[:3])
    with torch.cuda.device_of(k):
        rounding_triton.round_and_scale[triton.cdiv(tokens, ROWS), heads, images](
            numbers,
            steps,
            scaled,
            k,
            v,
            mean,
            largest,
            *strides,
            tokens,
            UNIT=unit,
            CHANNELS=channels,
            PADDED=padded,
            ROWS=ROWS,
            enable_fp_fusion=False,
        )
    keys, values = (k if numbers is None else numbers), (v if scaled is None else scaled)
    return KeysAndValues(keys, values, steps, mean, largest)
