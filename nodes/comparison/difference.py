"""How far two results are apart."""

from __future__ import annotations

import torch
from torch import Tensor


def split_streams(samples: Tensor) -> list[Tensor]:
    """The latents that one LATENT holds: picture and sound, for some models."""
    return list(samples.unbind()) if samples.is_nested else [samples]


def measure_psnr(result: Tensor, plain: Tensor) -> float:
    """Peak signal-to-noise ratio in dB; infinite where both are equal. Both are of one shape.

    The peak is the range of ``plain``, its highest value less its lowest: latents have no other.
    """
    plain = plain.double()
    if torch.equal(result.double(), plain):
        return float("inf")
    error = (result - plain).square().mean()
    return float(10 * torch.log10((plain.max() - plain.min()).square() / error))


def is_identical(result: Tensor, plain: Tensor) -> bool:
    """Bit for bit."""
    return result.shape == plain.shape and torch.equal(result, plain)
