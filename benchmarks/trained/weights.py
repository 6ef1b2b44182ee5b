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

from . import places
from .network import SHAPES, Shape, build_network
from .unet import UNetShape

SCALES = "latent_scales"


def save(
    place: Path, weights: dict[str, Tensor], scales: Tensor, shape: Shape, **facts: Any
) -> None:
    """weights: of the network, by its names. facts: what else the file is to say of itself."""
    tensors = {name: weight.detach().half().contiguous().cpu() for name, weight in weights.items()}
    about = {
        "kind": shape.kind,
        "shape": asdict(shape),
        "unet_config": shape.make_settings(),
        **facts,
    }
    place.parent.mkdir(parents=True, exist_ok=True)
    metadata = {name: json.dumps(value) for name, value in about.items()}
    save_file({**tensors, SCALES: scales.float().contiguous()}, place, metadata)


def load(
    place: Path = places.WEIGHTS["unet"],
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> ModelPatcher:
    """MODEL, computing in ``dtype``.

    Raises FileNotFoundError where the file is missing, KeyError where it lacks a weight.
    """
    if not place.is_file():
        raise FileNotFoundError(f"{place} is missing; `python -m devtools quality train` makes it")
    with safe_open(place, "pt") as file:
        about = {name: json.loads(value) for name, value in file.metadata().items()}
        tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
    # The first file was written when there was one kind.
    shape = SHAPES[about.get("kind", UNetShape.kind)](**about["shape"])
    model = build_network(shape, tensors.pop(SCALES), device=device, dtype=dtype)
    network = model.model.diffusion_model
    for name, weight in network.named_parameters():
        weight.requires_grad_(False)
        weight.data.copy_(tensors[name])
    network.eval()
    return model
