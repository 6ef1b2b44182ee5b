"""Random weights that draw something: smooth coloured shapes instead of white noise."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import torch
from torch import Tensor, nn


def fill(module: nn.Module, seed: int, gain: Callable[[str], float] = lambda name: 1.0) -> None:
    """Give every parameter a value from a generator of its own.

    Matrices and convolutions mix their inputs at random, scaled so that signals keep their size.
    Every 3 x 3 kernel has one smooth shape, so each convolution also blurs: after a few levels the
    noise that sampling starts from has become shapes of all sizes. Norms and biases do nothing.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, weight in module.named_parameters():
        if weight.ndim == 4:
            mix = torch.randn(*weight.shape[:2], 1, 1, generator=generator)
            value = mix / sqrt(weight.shape[1]) * _smooth(weight.shape[2]) * gain(name)
        elif weight.ndim == 2:
            mix = torch.randn(weight.shape, generator=generator)
            value = mix / sqrt(weight.shape[1]) * gain(name)
        else:
            value = torch.full(weight.shape, float(name.endswith("weight")))
        weight.data.copy_(value)


def _smooth(size: int) -> Tensor:
    """A bell of this size, (size, size), that sums to 1."""
    row = torch.hann_window(size + 2, periodic=False)[1:-1]
    return torch.outer(row, row) / row.sum() ** 2
