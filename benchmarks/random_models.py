"""ComfyUI's own models with random weights, as its loaders return them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from torch import Generator, nn

Fill = Callable[[nn.Module, Generator], None]
"""It gives the weights of a module their values, from a seeded generator."""


def fill_weights(module: nn.Module, generator: Generator, scale: float = 1.0) -> None:
    """Random numbers for all that a checkpoint holds: open gates, features near the size of one.

    scale: of what norms let through, so of how much a block changes.
    """
    for name, weight in module.state_dict().items():
        if weight.ndim > 1:
            weight.normal_(0.0, weight[0].numel() ** -0.5, generator=generator)
        else:
            weight.normal_(0.0 if name.endswith("bias") else scale, 0.1, generator=generator)


def build_model(
    configuration: Callable[[dict[str, Any]], Any],
    settings: Mapping[str, Any],
    *,
    fill: Fill = fill_weights,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    computing: torch.dtype | None = None,
    device: torch.device | str = "cpu",
    load_device: torch.device | None = None,
) -> ModelPatcher:
    """MODEL, its weights on ``device``.

    configuration: a class of ``comfy.supported_models``. settings: what ComfyUI reads from a
    checkpoint, or would if there were one so small. dtype: of the weights. computing: what they
    are cast to in each layer, as ComfyUI does with weights in fp8; None: they are not cast.
    load_device: where it computes, by default where its weights are.
    """
    place = torch.device(device)
    whole = {**settings, "dtype": dtype}
    config = configuration(whole)
    config.unet_config = whole  # without what the class puts in for its full size
    config.manual_cast_dtype = computing
    model = config.get_model({}, device=place)
    fill(model.diffusion_model, torch.Generator(place).manual_seed(seed))
    return ModelPatcher(model, load_device=load_device or place, offload_device=place)
