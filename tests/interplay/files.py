"""Files that ComfyUI's own loaders read."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import folder_paths
import torch
from comfy.model_patcher import ModelPatcher


@cache
def _folder() -> TemporaryDirectory[str]:
    """Gone when the process ends."""
    return TemporaryDirectory(prefix="interplay-")


def save(kind: str, name: str, content: dict[Any, Any]) -> str:
    """The name by which ComfyUI's loaders of ``kind``, such as "loras", find the file."""
    folder = Path(_folder().name) / kind
    folder.mkdir(exist_ok=True)
    folder_paths.add_model_folder_path(kind, str(folder))
    file = f"{name}.pt"
    torch.save(content, folder / file)
    return file


def save_lora(name: str, model: ModelPatcher) -> str:
    """A LoRA with random weights for every matrix of the model."""
    generator = torch.Generator().manual_seed(7)
    lora = {}
    for key, weight in model.model.diffusion_model.state_dict().items():
        if weight.ndim == 2 and key.endswith(".weight"):
            up, down = (torch.randn(side, 2, generator=generator) for side in weight.shape)
            layer = f"diffusion_model.{key.removesuffix('.weight')}"
            lora[f"{layer}.lora_up.weight"] = up * 0.1
            lora[f"{layer}.lora_down.weight"] = down.T * weight.shape[1] ** -0.5
    return save("loras", name, lora)
