"""The trained weights as one file: few bits, and all that is needed to build the model."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from . import places
from .network import SHAPES, Shape, build_network
from .unet import UNetShape

SCALES = "latent_scales"
ROW_SCALE = ".row_scale"
"""This ends the name of the scales, one of each row, of a matrix that is stored in 8 bits."""


@dataclass(frozen=True)
class Stored:
    """What a file holds. scales: of the latent's channels. tensors: by the network's names. facts:
    what else it says of itself.
    """

    shape: Shape
    scales: Tensor
    tensors: dict[str, Tensor]
    facts: dict[str, Any] = field(default_factory=dict)

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
        shape = SHAPES[about.pop("kind", UNetShape.kind)](**about.pop("shape"))
        scales = tensors.pop(SCALES)
    except (SafetensorError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise RuntimeError(f"{place} is no file of our weights: {error}") from error
    return Stored(shape, scales, _unpack(tensors), about)


def save(
    place: Path, tensors: dict[str, Tensor], scales: Tensor, shape: Shape, **facts: Any
) -> None:
    """Matrices in 8 bits, the others in single precision. Never leaves half a file.

    tensors: the network's weights, by its names. facts: what else the file is to say of itself.
    """
    packed = {name: one.contiguous().cpu() for name, one in _pack(tensors).items()}
    about = {"kind": shape.kind, "shape": asdict(shape), **facts}
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = place.with_suffix(".part")
    metadata = {name: json.dumps(value) for name, value in about.items()}
    save_file({**packed, SCALES: scales.float().cpu()}, unfinished, metadata)
    unfinished.replace(place)


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


def _pack(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """What ``_unpack`` reads: each row of a matrix is divided by a scale of its own."""
    packed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        rows = tensor.detach().float()
        if tensor.ndim < 2:
            packed[name] = rows
            continue
        scale = rows.flatten(1).abs().amax(1) / 127
        scale = scale.where(scale > 0, 1.0)  # of a row of zeros
        packed[name] = (rows / scale.view(-1, *[1] * (rows.ndim - 1))).round().char()
        packed[name + ROW_SCALE] = scale
    return packed


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
