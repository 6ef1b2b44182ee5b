"""The small model that was trained for the quality measurements, as a checkpoint's outputs."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import comfy.model_management
import comfy.model_patcher
import comfy.sd
import torch
from torch import Tensor

QUALITY = Path(__file__).resolve().parents[2] / "benchmarks" / "quality"
PACKAGE = "token_merge_quality"


def _part(name: str) -> Any:
    """A module of benchmarks/quality, which ComfyUI's process has under a name of its own."""
    if PACKAGE not in sys.modules:
        spec = importlib.util.spec_from_file_location(PACKAGE, QUALITY / "__init__.py")
        assert spec and spec.loader
        package = importlib.util.module_from_spec(spec)
        sys.modules[PACKAGE] = package
        spec.loader.exec_module(package)
    return importlib.import_module(f"{PACKAGE}.{name}")


class HaarVAE:
    """What VAEDecode and VAEEncode call, for the fixed transform of codec.py."""

    def decode(self, latent: Tensor) -> Tensor:
        """(B, 12, H, W) -> (B, 2H, 2W, 3) in [0, 1]."""
        pixels: Tensor = _part("codec").pixels(latent.float())
        return (pixels / 2 + 0.5).clamp(0, 1).movedim(1, -1)

    def encode(self, pixels: Tensor) -> Tensor:
        """(B, 2H, 2W, 3) in [0, 1] -> (B, 12, H, W)."""
        bands: Tensor = _part("codec").bands(2 * pixels[..., :3].movedim(-1, 1) - 1)
        return bands


def unet() -> comfy.model_patcher.ModelPatcher:
    """MODEL, in single precision."""
    model = _part("weights").load(dtype=torch.float32).model
    return comfy.model_patcher.ModelPatcher(
        model,
        load_device=comfy.model_management.get_torch_device(),
        offload_device=comfy.model_management.unet_offload_device(),
    )


def clip() -> comfy.sd.CLIP:
    """CLIP: the text encoder that the model was trained with."""
    encoder: comfy.sd.CLIP = _part("text").encoder()
    return encoder
