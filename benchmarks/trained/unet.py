"""ComfyUI's own ``UNetModel`` in its ``BaseModel``, with SD 1.5's blocks made narrow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import comfy.model_base
import comfy.supported_models

from . import autoencoder, text

LEVELS = (1, 2, 2)
"""Each level is so many times as wide as the first one; all have self-attention, cross-attention
and MLP."""


class VelocityUNet(comfy.supported_models.SD15):
    """SD 1.5 that predicts velocities, of a latent with more channels than four."""

    # Sampling starts from pure noise, which carries no brightness; so has training to.
    sampling_settings: ClassVar[dict[str, Any]] = {"zsnr": True}

    def model_type(self, *_: Any) -> comfy.model_base.ModelType:
        return comfy.model_base.ModelType.V_PREDICTION

    def inpaint_model(self) -> bool:
        """More channels than four make ComfyUI take an SD 1.5 for one that inpaints."""
        return False


@dataclass(frozen=True)
class UNetShape:
    """width: channels at full resolution, where one latent cell is one token.

    channels: of such a cell.
    """

    kind: ClassVar[str] = "unet"
    configuration: ClassVar[Any] = VelocityUNet
    dimensions: ClassVar[int] = 2
    width: int = 64
    head: int = 64
    channels: int = autoencoder.CHANNELS

    def make_settings(self) -> dict[str, Any]:
        """The arguments of ComfyUI's ``UNetModel``, all but what it computes in."""
        levels = len(LEVELS)
        return {
            "image_size": 32,
            "in_channels": self.channels,
            "out_channels": self.channels,
            "model_channels": self.width,
            "channel_mult": list(LEVELS),
            "num_res_blocks": [1] * levels,
            "transformer_depth": [1] * levels,
            "transformer_depth_output": [1] * 2 * levels,
            "transformer_depth_middle": 1,
            "context_dim": text.WIDTH,
            "num_heads": -1,
            "num_head_channels": min(self.head, self.width),
            "use_spatial_transformer": True,
            "use_linear_in_transformer": False,
            "use_temporal_attention": False,
            "adm_in_channels": None,
            "legacy": False,
        }
