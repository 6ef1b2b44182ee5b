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
    """What attention reads, and what it needs where keys are rounded: nothing where they are not.

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


def read(k: Tensor, v: Tensor, shape: Shape, rounds: bool = False) -> KeysAndValues:
    """What a kernel of this shape reads of k and v, (B, G, N, D).

    rounds: whether keys are rounded.
    """
    if rounds:
        return round_keys(k, v, shape.half_sums)
    if shape.half_sums:
        scaled, largest = scale_values(v)
        return KeysAndValues(k, scaled, largest=largest)
    return KeysAndValues(k, v)


def scale_values(v: Tensor) -> tuple[Tensor, Tensor]:
    """Values in units, and the largest one, as in ``KeysAndValues``; by two kernels."""
    images, heads, tokens, channels = v.shape
    scaled, largest = _make_scaled(v)
    unit, strides = count_in_units(*v.stride()[:3])
    with torch.cuda.device_of(v):
        rounding_triton.scale_values[triton.cdiv(tokens, ROWS), heads, images](
            scaled,
            v,
            largest,
            *strides,
            tokens,
            UNIT=unit,
            CHANNELS=channels,
            PADDED=triton.next_power_of_2(channels),
            ROWS=ROWS,
            enable_fp_fusion=False,
        )
    return scaled, largest


def _make_scaled(v: Tensor) -> tuple[Tensor, Tensor]:
    """Room for values in units, and the largest value of each head."""
    largest = torch.linalg.vector_norm(v, ord=inf, dim=(2, 3), dtype=torch.float32)
    return v.new_empty(v.shape, dtype=torch.float16), largest


def round_keys(k: Tensor, v: Tensor, half_sums: bool = False) -> KeysAndValues:
    """By one kernel, after PyTorch's for the mean and for the largest value.

    k, v: (B, G, N, D). half_sums: whether values are to be summed in half precision.
    """
    images, heads, tokens, channels = k.shape
    padded = max(LEAST_CHANNELS, triton.next_power_of_2(channels))
    numbers = k.new_empty(images, heads, tokens, padded, dtype=torch.int8)
    steps = k.new_empty(images, heads, tokens, dtype=torch.float32)
    scaled, largest = _make_scaled(v) if half_sums else (None, None)
    mean = average_keys(k).contiguous()
    unit, strides = count_in_units(*k.stride()[:3], *v.stride()[:3])
    with torch.cuda.device_of(k):
        rounding_triton.round_keys[triton.cdiv(tokens, ROWS), heads, images](
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
    return KeysAndValues(numbers, v if scaled is None else scaled, steps, mean, largest)
