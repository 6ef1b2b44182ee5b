"""Random weights that draw something: smooth coloured shapes instead of white noise."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import torch
from torch import Generator, Tensor, nn


def fill_smoothly(
    module: nn.Module, generator: Generator, gains: Mapping[str, float] | None = None
) -> None:
    """Give every parameter a value.

    Matrices and convolutions mix their inputs at random, scaled so that signals keep their size.
    Every 3 x 3 kernel has one smooth shape, so each convolution also blurs: after a few levels the
    noise that sampling starts from has become shapes of all sizes. Norms and biases do nothing.

    gains: factors on the matrices and kernels whose names contain a word.
    """
    for name, weight in module.named_parameters():
        if weight.ndim in (2, 4):
            size = (*weight.shape[:2], *[1] * (weight.ndim - 2))
            value = torch.randn(size, generator=generator, device=generator.device)
            value = value / sqrt(weight.shape[1])
            if weight.ndim == 4:
                value = value * _make_bell(weight.shape[2]).to(value)
            for word, gain in (gains or {}).items():
                value = value * gain if word in name else value
        else:
            value = torch.full(weight.shape, float(name.endswith("weight")))
        weight.data.copy_(value)


def _make_bell(size: int) -> Tensor:
    """A smooth shape, (size, size), that sums to 1."""
    row = torch.hann_window(size + 2, periodic=False)[1:-1]
    return torch.outer(row, row) / row.sum() ** 2
