"""ComfyUI's description of the autoencoder's latent, see autoencoder.py."""

from __future__ import annotations

import comfy.latent_formats
from torch import Tensor

from . import autoencoder


class Latent(comfy.latent_formats.LatentFormat):
    """Each channel is multiplied by a constant. scales: (32,)."""

    latent_channels = autoencoder.CHANNELS
    spacial_downscale_ratio = autoencoder.PIXELS_PER_TOKEN

    def __init__(self, scales: Tensor) -> None:
        self.scales = scales.view(1, -1, *[1] * self.latent_dimensions)

    def process_in(self, latent: Tensor) -> Tensor:
        return latent * self.scales.to(latent)

    def process_out(self, latent: Tensor) -> Tensor:
        return latent / self.scales.to(latent)


class VideoLatent(Latent):
    """The same of every frame: (B, 32, F, H, W)."""

    latent_dimensions = 3


FORMATS = {one.latent_dimensions: one for one in (Latent, VideoLatent)}
"""By the number of dimensions beside the batch and the channels."""
