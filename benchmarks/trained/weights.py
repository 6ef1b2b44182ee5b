"""The trained weights as one file: few bits, and all that is needed to build the model."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from . import eight_bits, places
from .network import SHAPES, Shape, build_network
from .unet import UNetShape

SCALES = "latent_scales"


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


def halve(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """In half precision, which is how most of the files have them."""
    return {name: weight.half() for name, weight in weights.items()}


def save(
    place: Path, weights: dict[str, Tensor], scales: Tensor, shape: Shape, **facts: Any
) -> None:
    """weights: of the network, by its names, as ``halve`` or ``eight_bits.pack`` makes them.
    facts: what else the file is to say of itself.
    """
    tensors = {name: weight.detach().contiguous().cpu() for name, weight in weights.items()}
    about = {
        "kind": shape.kind,
        "shape": asdict(shape),
        "unet_config": shape.make_settings(),
        **facts,
    }
    place.parent.mkdir(parents=True, exist_ok=True)
    metadata = {name: json.dumps(value) for name, value in about.items()}
    save_file({**tensors, SCALES: scales.float().contiguous()}, place, metadata)


def read(place: Path) -> Stored:
    """Raises FileNotFoundError where the file is missing, RuntimeError where it is another's."""
    if not place.is_file():
        raise FileNotFoundError(
            f"{place} is missing; `python -m devtools quality train` makes weights, "
            "`python -m devtools quality distil` those for few steps"
        )
    try:
        with safe_open(place, "pt") as file:
            about = {name: json.loads(value) for name, value in file.metadata().items()}
            tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
        # The first file was written when there was one kind.
        shape = SHAPES[about.get("kind", UNetShape.kind)](**about["shape"])
        scales = tensors.pop(SCALES)
    except (SafetensorError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise RuntimeError(f"{place} is no file of our weights: {error}") from error
    return Stored(shape, scales, eight_bits.unpack(tensors))


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
