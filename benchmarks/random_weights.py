"""ComfyUI's own models with random weights, as its loaders return them."""

from __future__ import annotations

from typing import Any

import torch
from comfy.model_patcher import ModelPatcher


def model_of(
    family: type, config: dict[str, Any], dtype: torch.dtype, device: torch.device
) -> ModelPatcher:
    """A model with seeded weights of the size that keeps activations finite.

    family: its class in ``comfy.supported_models``. config: what ComfyUI reads from a checkpoint.
    """
    config = {**config, "dtype": dtype}
    settings = family(config)
    settings.unet_config = config
    model = settings.get_model({}, device=device)
    generator = torch.Generator(device).manual_seed(0)
    for name, parameter in model.diffusion_model.named_parameters():
        if parameter.ndim > 1:
            parameter.data.normal_(0.0, parameter[0].numel() ** -0.5, generator=generator)
        else:
            parameter.data.fill_(0.0 if name.endswith("bias") else 1.0)
    return ModelPatcher(model, load_device=device, offload_device=device)
