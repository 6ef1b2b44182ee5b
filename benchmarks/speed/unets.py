"""ComfyUI's own UNets with random weights, as its loaders return them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import comfy.supported_models
from comfy.model_patcher import ModelPatcher

from ..random_models import build_model
from .environment import Environment
from .sampling import Request

COMMON: dict[str, Any] = {
    "image_size": 32,
    "in_channels": 4,
    "out_channels": 4,
    "use_spatial_transformer": True,
    "legacy": False,
    "use_checkpoint": False,
    "use_temporal_attention": False,
    "use_temporal_resblock": False,
    "model_channels": 320,
}
SD15: dict[str, Any] = {
    **COMMON,
    "adm_in_channels": None,
    "num_res_blocks": [2, 2, 2, 2],
    "channel_mult": [1, 2, 4, 4],
    "transformer_depth": [1, 1, 1, 1, 1, 1, 0, 0],
    "transformer_depth_middle": 1,
    "transformer_depth_output": [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0],
    "use_linear_in_transformer": False,
    "context_dim": 768,
    "num_heads": 8,
    "num_head_channels": -1,
}
SDXL: dict[str, Any] = {
    **COMMON,
    "num_classes": "sequential",
    "adm_in_channels": 2816,
    "num_res_blocks": [2, 2, 2],
    "channel_mult": [1, 2, 4],
    "transformer_depth": [0, 0, 2, 2, 10, 10],
    "transformer_depth_middle": 10,
    "transformer_depth_output": [0, 0, 0, 2, 2, 2, 10, 10, 10],
    "use_linear_in_transformer": True,
    "context_dim": 2048,
    "num_heads": -1,
    "num_head_channels": 64,
}
NARROW: dict[str, Any] = {"model_channels": 32, "context_dim": 32, "num_res_blocks": [1, 1, 1]}
NARROW_SD15: dict[str, Any] = {
    **SD15,
    **NARROW,
    "channel_mult": [1, 2, 2],
    "transformer_depth": [1, 1, 0],
    "transformer_depth_output": [1, 1, 1, 1, 0, 0],
}
NARROW_SDXL: dict[str, Any] = {
    **SDXL,
    **NARROW,
    "num_head_channels": 8,
    "transformer_depth": [0, 1, 1],
    "transformer_depth_middle": 1,
    "transformer_depth_output": [0, 0, 1, 1, 1, 1],
}
"""It has the same structure and is small enough for a test."""


@dataclass(frozen=True)
class Unet:
    """finest: the latent's side over the side of the finest layer with self-attention.

    narrow: a configuration that is used where only the code is tested.
    """

    name: str
    family: type
    config: dict[str, Any]
    narrow: dict[str, Any]
    finest: int

    def build(self, environment: Environment) -> ModelPatcher:
        config = self.config_in(environment)
        return build_model(self.family, config, dtype=environment.dtype, device=environment.device)

    def config_in(self, environment: Environment) -> dict[str, Any]:
        return self.narrow if environment.narrow else self.config

    def name_in(self, environment: Environment) -> str:
        return f"{self.name} (narrow)" if environment.narrow else self.name

    def request(self, side: int, environment: Environment) -> Request:
        """side: pixels of a square picture."""
        context = self.config_in(environment)["context_dim"]
        return Request(side, side, guided=environment.guided, context=context)


UNETS = {
    "sd15": Unet("SD 1.5", comfy.supported_models.SD15, SD15, NARROW_SD15, 1),
    "sdxl": Unet("SDXL", comfy.supported_models.SDXL, SDXL, NARROW_SDXL, 2),
}
