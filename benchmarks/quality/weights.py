"""The trained weights as one file: half precision, and all that is needed to build the model."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from . import network, places

SCALES = "latent_scales"


def save(
    place: Path, weights: dict[str, Tensor], scales: Tensor, shape: network.Shape, **facts: Any
) -> None:
    """weights: of the UNet, by its names. facts: what else the file is to say of itself."""
    tensors = {name: weight.detach().half().contiguous().cpu() for name, weight in weights.items()}
    about = {"shape": asdict(shape), "unet_config": shape.config(), **facts}
    place.parent.mkdir(parents=True, exist_ok=True)
    metadata = {name: json.dumps(value) for name, value in about.items()}
    save_file({**tensors, SCALES: scales.float().contiguous()}, place, metadata)


def load(
    place: Path = places.WEIGHTS,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> ModelPatcher:
    """MODEL, computing in ``dtype``.

    Raises FileNotFoundError where the file is missing, KeyError where it lacks a weight.
    """
    if not place.is_file():
        raise FileNotFoundError(f"{place} is missing; `python -m devtools quality train` makes it")
    with safe_open(place, "pt") as file:
        shape = network.Shape(**json.loads(file.metadata()["shape"]))
        tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
    model = network.build(shape, tensors.pop(SCALES), device, dtype)
    unet = model.model.diffusion_model
    for name, weight in unet.named_parameters():
        weight.requires_grad_(False)
        weight.data.copy_(tensors[name])
    unet.eval()
    return model
