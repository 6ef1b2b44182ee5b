"""The small models that were trained for the quality measurements, as a checkpoint's outputs.

All prompts get the same ones, as a server keeps a checkpoint's.
"""

from __future__ import annotations

from functools import cache

import comfy.model_management
import comfy.sd
import torch
from comfy.model_patcher import ModelPatcher
from torch import Tensor

from benchmarks.trained import codec, places, text, weights


class HaarVAE:
    """What VAEDecode and VAEEncode call, for the fixed transform of codec.py."""

    def decode(self, latent: Tensor) -> Tensor:
        """(B, 12, ..., H, W) -> (B, ..., 2H, 2W, 3) in [0, 1]. ...: the frames of clips."""
        pixels: Tensor = codec.join_bands(latent.float())
        return (pixels / 2 + 0.5).clamp(0, 1).movedim(1, -1)

    def encode(self, pixels: Tensor) -> Tensor:
        """(B, 2H, 2W, 3) in [0, 1] -> (B, 12, H, W)."""
        bands: Tensor = codec.split_bands(2 * pixels[..., :3].movedim(-1, 1) - 1)
        return bands


@cache
def load_model(kind: str) -> ModelPatcher:
    """MODEL, in single precision. kind: "unet", "flux" or "wan"."""
    return ModelPatcher(
        weights.load(places.WEIGHTS[kind], dtype=torch.float32).model,
        load_device=comfy.model_management.get_torch_device(),
        offload_device=comfy.model_management.unet_offload_device(),
    )


@cache
def build_text_encoder() -> comfy.sd.CLIP:
    """CLIP: the one that the models were trained with."""
    encoder: comfy.sd.CLIP = text.build_encoder()
    return encoder
