"""The trained weights as one file: few bits, and all that is needed to build the model."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from comfy.model_patcher import ModelPatcher
from safetensors import SafetensorError, safe_open
from torch import Tensor

from . import places
from .network import SHAPES, Shape, build_network
from .unet import UNetShape

SCALES = "latent_scales"
ROW_SCALE = ".row_scale"
"""This ends the name of the scales, one of each row, of a matrix that is stored in 8 bits."""


@dataclass(frozen=True)
class Stored:
    """What a file holds. scales: of the latent's channels. tensors: by the network's names."""

    shape: Shape
    scales: Tensor
    tensors: dict[str, Tensor]

    def build(
        self, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> ModelPatcher:
        """MODEL, computing in ``dtype``. Raises KeyError where a weight is missing."""
        model = build_network(self.shape, self.scales, device=device, dtype=dtype)
        network = model.model.diffusion_model
        for name, weight in network.named_parameters():
            weight.requires_grad_(False)
            weight.data.copy_(self.tensors[name])
        network.eval()
        return model


def read(place: Path) -> Stored:
    """Raises FileNotFoundError where the file is missing, RuntimeError where it is another's."""
    if not place.is_file():
        raise FileNotFoundError(f"{place} is missing, expected a file of our weights")
    try:
        with safe_open(place, "pt") as file:
            about = {name: json.loads(value) for name, value in file.metadata().items()}
            tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
        # The first file was written when there was one kind.
        shape = SHAPES[about.get("kind", UNetShape.kind)](**about["shape"])
        scales = tensors.pop(SCALES)
    except (SafetensorError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise RuntimeError(f"{place} is no file of our weights: {error}") from error
    return Stored(shape, scales, _unpack(tensors))


def load(
    place: Path = places.WEIGHTS["unet"],
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> ModelPatcher:
    """MODEL, computing in ``dtype``. Raises what ``read`` and ``Stored.build`` raise."""
    return read(place).build(device, dtype)


def fingerprint(model: ModelPatcher) -> str:
    """Eight characters that say which weights these are. model: in single precision."""
    digest = hashlib.sha256()
    for weight in model.model.diffusion_model.parameters():
        digest.update(weight.detach().cpu().numpy().tobytes())
    return digest.hexdigest()[:8]


def _unpack(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Matrices in 8 bits times the scales of their rows; what has no scales as it is."""
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if name.endswith(ROW_SCALE):
            continue
        scale = tensors.get(name + ROW_SCALE)
        shape = (-1, *[1] * (tensor.ndim - 1))
        found[name] = tensor if scale is None else tensor * scale.view(shape)
    return found
