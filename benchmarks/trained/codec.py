"""The latent: a fixed orthonormal transform of 2 x 2 pixels, so nothing is lost and none learned.

One Haar step per colour turns (3, 2H, 2W) pixels into (12, H, W): four bands of three colours,
the mean and three differences. The differences of pictures are small; they are scaled up by the
square root of what unit variance would take, so that their noise is not what the model spends
itself on.
"""

from __future__ import annotations

import torch
from einops import rearrange
from torch import Tensor

CHANNELS = 12
PIXELS_PER_TOKEN = 2
"""A token has so many pixels a side: one latent cell is 2 x 2 pixels."""

HAAR = torch.tensor(
    [[1.0, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]],
).mul(0.5)
"""The rows are mean, horizontal, vertical and diagonal difference. It is orthonormal, and its own
inverse."""


def encode(pixels: Tensor) -> Tensor:
    """(B, 3, ..., 2H, 2W) in [0, 1] -> (B, 12, ..., H, W), unscaled."""
    return split_bands(2 * pixels - 1)


def decode(latent: Tensor) -> Tensor:
    """(B, 12, ..., H, W) -> (B, 3, ..., 2H, 2W) in [0, 1]."""
    return (join_bands(latent) / 2 + 0.5).clamp(0, 1)


def split_bands(pixels: Tensor) -> Tensor:
    """(B, 3, ..., 2H, 2W) -> (B, 12, ..., H, W), unscaled; channel 3 * band + colour.

    ...: nothing for pictures, the frames of clips.
    """
    cells = rearrange(pixels, "b c ... (h y) (w x) -> b (y x) c ... h w", y=2, x=2)
    mixed = torch.einsum("ij,bj...->bi...", HAAR.to(pixels), cells)
    return rearrange(mixed, "b i c ... h w -> b (i c) ... h w")


def join_bands(latent: Tensor) -> Tensor:
    """The inverse of ``split_bands``: (B, 12, ..., H, W) -> (B, 3, ..., 2H, 2W)."""
    mixed = rearrange(latent, "b (i c) ... h w -> b i c ... h w", i=4)
    cells = torch.einsum("ji,bj...->bi...", HAAR.to(latent), mixed)
    return rearrange(cells, "b (y x) c ... h w -> b c ... (h y) (w x)", y=2, x=2)
