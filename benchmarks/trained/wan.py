"""ComfyUI's own ``WanModel``, made narrow: one sequence of all frames, the prompt apart from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import comfy.supported_models

from . import autoencoder, text

FRAMES = 9
"""Of a clip."""
HEAD = 64
"""A head has so many channels, half of Wan's."""


class NarrowWan(comfy.supported_models.WAN21_T2V):
    """Wan 2.1 that spends less of its schedule on high noise, since its clips are small."""

    # By Esser et al. 2024 (arXiv 2403.03206) the shift grows with the square root of the
    # number of tokens. A clip has nine times those of a picture, for which ComfyUI's shift is 1.
    sampling_settings: ClassVar[dict[str, Any]] = {"shift": 3.0}


@dataclass(frozen=True)
class WanShape:
    """heads: of 64 channels. blocks: how many. One latent cell of one frame is one token and
    has so many channels."""

    kind: ClassVar[str] = "wan"
    configuration: ClassVar[Any] = NarrowWan
    dimensions: ClassVar[int] = 3
    heads: int = 3
    blocks: int = 6
    channels: int = autoencoder.CHANNELS

    def make_settings(self) -> dict[str, Any]:
        """What ComfyUI reads from a checkpoint of Wan 2.1 for text to video."""
        width = HEAD * self.heads
        return {
            "image_model": "wan2.1",
            "model_type": "t2v",
            "patch_size": (1, 1, 1),
            "in_dim": self.channels,
            "out_dim": self.channels,
            "dim": width,
            "ffn_dim": 4 * width,
            "freq_dim": 256,
            "text_dim": text.WIDTH,
            "num_heads": self.heads,
            "num_layers": self.blocks,
            "qk_norm": True,
            "cross_attn_norm": True,
        }
