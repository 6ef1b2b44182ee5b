"""ComfyUI's own ``Flux``, made narrow: picture and prompt attend to each other in one sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import comfy.supported_models

from . import autoencoder, text

HEAD = 64
"""A head has so many channels, half of Flux's."""
AXES = (16, 24, 24)
"""So many of them tell the position among references, down and across. Flux has 16, 56 and 56."""


@dataclass(frozen=True)
class FluxShape:
    """heads: of 64 channels. double, single: numbers of blocks. One latent cell is one token
    and has so many channels.
    """

    kind: ClassVar[str] = "flux"
    configuration: ClassVar[Any] = comfy.supported_models.FluxSchnell
    dimensions: ClassVar[int] = 2
    heads: int = 3
    double: int = 2
    single: int = 4
    channels: int = autoencoder.CHANNELS

    def make_settings(self) -> dict[str, Any]:
        """What ComfyUI reads from a checkpoint of Flux Schnell, which has no guidance input."""
        return {
            "image_model": "flux",
            "in_channels": self.channels,
            "out_channels": self.channels,
            "vec_in_dim": None,
            "context_in_dim": text.WIDTH,
            "hidden_size": HEAD * self.heads,
            "mlp_ratio": 4.0,
            "num_heads": self.heads,
            "depth": self.double,
            "depth_single_blocks": self.single,
            "axes_dim": list(AXES),
            "theta": 10000,
            "patch_size": 1,
            "qkv_bias": True,
            "guidance_embed": False,
            "txt_ids_dims": [],
        }
