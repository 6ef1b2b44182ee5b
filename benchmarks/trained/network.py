"""The kinds of model, by the names that the command line has for them."""

from __future__ import annotations

from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from torch import Tensor

from ..random_models import build_model
from . import latent
from .flux import FluxShape
from .unet import UNetShape
from .wan import WanShape

Shape = UNetShape | FluxShape | WanShape
"""It says how large a model is, and how ComfyUI samples with it."""

SHAPES: dict[str, type[Shape]] = {shape.kind: shape for shape in (UNetShape, FluxShape, WanShape)}


def build_network(
    shape: Shape,
    scales: Tensor,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> ModelPatcher:
    """MODEL with random weights.

    scales: of the latent's channels. dtype: of weights and of computing.
    """

    def configure(settings: dict[str, Any]) -> Any:
        configuration = shape.configuration(settings)
        configuration.latent_format = latent.FORMATS[shape.dimensions](scales)
        return configuration

    return build_model(configure, shape.make_settings(), dtype=dtype, device=device)
