"""One block of each transformer at full width, as ComfyUI has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from comfy.ldm.flux.layers import SingleStreamBlock
from comfy.ldm.wan.model import WanAttentionBlock
from comfy.model_patcher import ModelPatcher
from token_merge.tome_core import Stream

from ..diffusion_transformers import FLUX, WAN, Clip
from ..sampling import Request
from .blocks import HOST, OPERATIONS, Prepared

LARGE_WAN = {"dim": 5120, "num_heads": 40, "ffn_dim": 13824}
"""Of the models with 14 billion weights (config.json of Wan2.1-T2V-14B)."""


@dataclass(frozen=True)
class _OfClip:
    """clip: the picture or video."""

    clip: Clip

    @property
    def stream(self) -> Stream:
        return self.clip.stream

    @property
    def request(self) -> Request:
        return self.clip.request(self.clip.transformer.config_in(HOST))

    def build_host(self) -> ModelPatcher:
        return self.clip.transformer.narrowest(HOST)


@dataclass(frozen=True)
class FluxBlock(_OfClip):
    """A single block; two of three of Flux's blocks are. Its attention is that of the others."""

    def prepare(self, device: torch.device, dtype: torch.dtype) -> Prepared:
        kind: dict[str, Any] = {"device": device, "dtype": dtype}
        width, heads, length = FLUX["hidden_size"], FLUX["num_heads"], self.clip.stream.length
        block = SingleStreamBlock(width, heads, FLUX["mlp_ratio"], operations=OPERATIONS, **kind)
        inputs = {
            "x": torch.randn(1, length, width, **kind),
            "vec": torch.randn(1, width, **kind),
            "pe": torch.randn(1, 1, length, width // heads // 2, 2, 2, device=device),
        }
        return Prepared(block, inputs, {"block_type": "single", "block_index": 0})


@dataclass(frozen=True)
class WanBlock(_OfClip):
    """sizes: None stands for those of the model with 1.3 billion weights."""

    sizes: dict[str, Any] | None = None

    def prepare(self, device: torch.device, dtype: torch.dtype) -> Prepared:
        kind: dict[str, Any] = {"device": device, "dtype": dtype}
        sizes = self.sizes or WAN
        width, heads, length = sizes["dim"], sizes["num_heads"], self.clip.stream.length
        block = WanAttentionBlock(
            "t2v_cross_attn",
            width,
            sizes["ffn_dim"],
            heads,
            cross_attn_norm=True,
            operation_settings={"operations": OPERATIONS, **kind},
        )
        inputs = {
            "x": torch.randn(1, length, width, **kind),
            "e": torch.randn(1, 6, width, **kind),
            "freqs": torch.randn(1, length, 1, width // heads // 2, 2, 2, device=device),
            "context": torch.randn(1, self.clip.prompt_tokens, width, **kind),
        }
        options = {"block_type": "double", "block_index": 0}
        return Prepared(block, inputs, options, block.cross_attn)
