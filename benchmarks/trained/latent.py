"""ComfyUI's description of the latent; see codec.py."""

from __future__ import annotations

from typing import Protocol, cast

import comfy.latent_formats
from torch import Tensor

from . import autoencoder, codec


class Latent(comfy.latent_formats.LatentFormat):
    """The Haar bands, each multiplied by a constant. scales: (12,)."""

    latent_channels = codec.CHANNELS
    spacial_downscale_ratio = codec.PIXELS_PER_TOKEN

    def __init__(self, scales: Tensor) -> None:
        self.scales = scales.view(1, -1, *[1] * self.latent_dimensions)

    def process_in(self, latent: Tensor) -> Tensor:
        return latent * self.scales.to(latent)

    def process_out(self, latent: Tensor) -> Tensor:
        return latent / self.scales.to(latent)


class VideoLatent(Latent):
    """The same of every frame: (B, 12, F, H, W)."""

    latent_dimensions = 3


class LearnedLatent(Latent):
    """Of the autoencoder, see autoencoder.py. scales: (32,)."""

    latent_channels = autoencoder.CHANNELS
    spacial_downscale_ratio = autoencoder.PIXELS_PER_TOKEN


class LearnedVideoLatent(LearnedLatent):
    """The same of every frame: (B, 32, F, H, W)."""

    latent_dimensions = 3


class Codec(Protocol):
    """What turns pixels into a latent and back: the modules codec.py and autoencoder.py."""

    def encode(self, pixels: Tensor) -> Tensor:
        """(B, 3, ..., height, width) in [0, 1] -> (B, C, ..., H, W), unscaled."""
        ...

    def decode(self, latent: Tensor) -> Tensor:
        """The inverse, clamped."""
        ...


def find_codec(channels: int) -> Codec:
    """Of latents with so many channels."""
    codecs = {codec.CHANNELS: codec, autoencoder.CHANNELS: autoencoder}
    return cast(Codec, codecs[channels])


def find_format(channels: int, dimensions: int) -> type[Latent]:
    """Of latents with so many channels and so many dimensions beside them and the batch."""
    formats = (Latent, VideoLatent, LearnedLatent, LearnedVideoLatent)
    wanted = (channels, dimensions)
    return next(one for one in formats if (one.latent_channels, one.latent_dimensions) == wanted)
