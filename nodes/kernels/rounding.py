"""Keys and values as our attention kernel reads them: as they are, or keys rounded to 8 bits."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
from torch import Tensor

from ...tome_core.windows.int8 import average_keys
from . import rounding_triton
from .shapes import count_in_units

LEAST_CHANNELS = 32
"""A product of 8 bits takes so many channels at once."""

ROWS = 64


@dataclass(frozen=True)
class KeysAndValues:
    """k, v: (B, G, N, D), channels follow each other.

    rounded: None where products are exact.
    """

    k: Tensor
    v: Tensor
    rounded: RoundedKeys | None = None


@dataclass(frozen=True)
class RoundedKeys:
    """Keys less their mean, as ``numbers`` times ``steps``.

    Args:
        numbers: (B, G, N, P) int8, zeros behind the D channels.
        steps: (B, G, N) float32.
        mean: (B, G, 1, D) float32.
    """

    numbers: Tensor
    steps: Tensor
    mean: Tensor


def round_keys(k: Tensor) -> RoundedKeys:
    """By one kernel, after PyTorch's for the mean. k: (B, G, N, D)."""
    images, heads, tokens, channels = k.shape
    padded = max(LEAST_CHANNELS, triton.next_power_of_2(channels))
    numbers = k.new_empty(images, heads, tokens, padded, dtype=torch.int8)
    steps = k.new_empty(images, heads, tokens, dtype=torch.float32)
    mean = average_keys(k).contiguous()
    unit, strides = count_in_units(*k.stride()[:3])
    with torch.cuda.device_of(k):
        rounding_triton.round_keys[triton.cdiv(tokens, ROWS), heads, images](
            numbers,
            steps,
            k,
            mean,
            *strides,
            tokens,
            UNIT=unit,
            CHANNELS=channels,
            PADDED=padded,
            ROWS=ROWS,
            enable_fp_fusion=False,
        )
    return RoundedKeys(numbers, steps, mean)
