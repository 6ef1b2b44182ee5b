"""Two of ComfyUI's diffusion transformers at real width, with few blocks and random weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import comfy.supported_models
import torch
from comfy.model_patcher import ModelPatcher
from token_merge.tome_core import Stream, TokenGrid

from ..random_models import build_model
from .environment import Environment
from .sampling import Request

PATCH = 16
"""A token has so many pixels a side: 8 per cell of the latent, and 2 cells per token."""
FRAMES_PER_LATENT = 4
"""A latent frame stands for so many frames of a video, except the first one, which stands for
one."""

FLUX: dict[str, Any] = {
    "image_model": "flux",
    "in_channels": 16,
    "out_channels": 16,
    "vec_in_dim": 768,
    "context_in_dim": 4096,
    "hidden_size": 3072,
    "mlp_ratio": 4.0,
    "num_heads": 24,
    "depth": 1,
    "depth_single_blocks": 1,
    "axes_dim": [16, 56, 56],
    "theta": 10000,
    "patch_size": 2,
    "qkv_bias": True,
    "guidance_embed": True,
    "txt_ids_dims": [],
}
NARROW_FLUX: dict[str, Any] = {
    **FLUX,
    "vec_in_dim": 16,
    "context_in_dim": 32,
    "hidden_size": 64,
    "num_heads": 2,
    "axes_dim": [8, 12, 12],
}
WAN: dict[str, Any] = {
    "image_model": "wan2.1",
    "model_type": "t2v",
    "patch_size": (1, 2, 2),
    "in_dim": 16,
    "out_dim": 16,
    "dim": 1536,
    "ffn_dim": 8960,
    "freq_dim": 256,
    "text_dim": 4096,
    "num_heads": 12,
    "num_layers": 1,
    "qk_norm": True,
    "cross_attn_norm": True,
}
NARROW_WAN: dict[str, Any] = {
    **WAN,
    "dim": 64,
    "ffn_dim": 128,
    "freq_dim": 32,
    "text_dim": 32,
    "num_heads": 2,
}


@dataclass(frozen=True)
class Transformer:
    """blocks: their number. width, context: where its configuration keeps the
    channels of a token and of the prompt. joint: picture and prompt attend to each other in one
    sequence, the prompt first; else the prompt has cross-attention of its own. video: its latents
    have frames. narrow: a configuration that is used where only the code is tested.
    """

    name: str
    blocks: str
    family: type
    config: dict[str, Any]
    narrow: dict[str, Any]
    width: str
    context: str
    joint: bool
    video: bool

    def build(self, environment: Environment) -> ModelPatcher:
        config, dtype = self.config_in(environment), self.dtype_in(environment)
        return build_model(self.family, config, dtype=dtype, device=environment.device)

    def narrowest(self, environment: Environment) -> ModelPatcher:
        """A host for attention of any size."""
        return self.build(replace(environment, narrow=True))

    def config_in(self, environment: Environment) -> dict[str, Any]:
        return self.narrow if environment.narrow else self.config

    def dtype_in(self, environment: Environment) -> torch.dtype:
        """What ComfyUI takes by itself on such a device."""
        best: torch.dtype = self.family.supported_inference_dtypes[0]  # type: ignore[attr-defined]
        return best if environment.on_gpu else torch.float32

    def name_in(self, environment: Environment) -> str:
        name = f"{self.name}, {self.blocks}"
        return f"{name} (narrow)" if environment.narrow else name

    def attention_in(self, environment: Environment) -> str:
        config = self.config_in(environment)
        heads = config["num_heads"]
        return f"{self.name}'s attention ({heads} heads of {config[self.width] // heads})"


FLUX_SHAPED = Transformer(
    "Flux",
    "2 blocks",
    comfy.supported_models.Flux,
    FLUX,
    NARROW_FLUX,
    width="hidden_size",
    context="context_in_dim",
    joint=True,
    video=False,
)
WAN_SHAPED = Transformer(
    "Wan 1.3B",
    "1 block",
    comfy.supported_models.WAN21_T2V,
    WAN,
    NARROW_WAN,
    width="dim",
    context="text_dim",
    joint=False,
    video=True,
)


@dataclass(frozen=True)
class Clip:
    """A picture, or a video of several frames, and how a transformer is measured with it.

    name: as the command line has it. height, width: in pixels. rounds, attention_rounds: of the
    whole model and of attention alone. warm_up: see ``Session.measure``. is_long: a call takes
    minutes, so that only whole calls of our nodes and of the unpatched model are measured.
    """

    name: str
    transformer: Transformer
    height: int
    width: int
    rounds: int
    attention_rounds: int
    frames: int = 1
    prompt_tokens: int = 512
    warm_up: bool = True
    is_long: bool = False

    @property
    def stream(self) -> Stream:
        """Where the picture lies in self-attention."""
        grid = TokenGrid(
            frames=self._latent_frames,
            height=math.ceil(self.height / PATCH),
            width=math.ceil(self.width / PATCH),
        )
        return Stream(grid, before=self.prompt_tokens if self.transformer.joint else 0)

    def request(self, config: dict[str, Any]) -> Request:
        """One row, on a GPU too: Flux is not called with a negative prompt."""
        return Request(
            self.height,
            self.width,
            context=config[self.transformer.context],
            prompt_tokens=self.prompt_tokens,
            pooled=config.get("vec_in_dim", 0),
            channels=16,
            frames=self._latent_frames if self.transformer.video else None,
        )

    @property
    def _latent_frames(self) -> int:
        return (self.frames - 1) // FRAMES_PER_LATENT + 1
