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

from benchmarks.trained import autoencoder, places, text, weights


class SmallVAE:
    """What VAEDecode and VAEEncode call, for the latent of the small models."""

    def decode(self, latent: Tensor) -> Tensor:
        """(B, C, ..., H, W) -> (B, ..., height, width, 3) in [0, 1]. ...: the frames of clips."""
        pixels: Tensor = autoencoder.decode(latent.float())
        return pixels.movedim(1, -1)

    def encode(self, pixels: Tensor) -> Tensor:
        """(B, height, width, 3) in [0, 1] -> (B, C, H, W)."""
        found: Tensor = autoencoder.encode(pixels[..., :3].movedim(-1, 1))
        return found


@cache
def load_model(kind: str) -> ModelPatcher:
    """MODEL, in single precision. kind: of ``places.WEIGHTS``."""
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
