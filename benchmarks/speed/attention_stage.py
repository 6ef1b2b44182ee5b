"""A model whose UNet is the self-attention of one transformer block and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import comfy.ops
import torch
from comfy.ldm.modules.attention import BasicTransformerBlock
from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from torch import Tensor

from ..random_models import fill_weights
from .environment import Environment
from .unets import UNETS


def build(channels: int, heads: int, environment: Environment) -> tuple[ModelPatcher, int]:
    """The model and the channels of its prompt. The latent's grid is the block's token grid.

    ComfyUI's own block runs within ComfyUI's own sampling: norm, patches, projections, attention,
    output patches, residual. Its cross-attention is left out and its MLP passes tokens through.
    """
    device, dtype = environment.device, environment.dtype
    block = BasicTransformerBlock(
        channels,
        heads,
        channels // heads,
        disable_temporal_crossattention=True,
        dtype=dtype,
        device=device,
        operations=comfy.ops.disable_weight_init,
    )
    block.ff = torch.nn.Identity()
    block.requires_grad_(False).eval()
    fill_weights(block, torch.Generator(device).manual_seed(0))
    tokens: dict[tuple[int, ...], Tensor] = {}

    def only_self_attention(
        executor: WrapperExecutor,
        x: Tensor,
        timesteps: Tensor,
        context: Tensor,
        y: Tensor | None,
        control: Any,
        transformer_options: dict[str, Any],
        **_: Any,
    ) -> Tensor:
        rows, height, width = x.shape[0], *x.shape[2:]
        size = (rows, height * width, channels)
        if size not in tokens:
            tokens.clear()
            seeded = torch.Generator(device).manual_seed(1)
            tokens[size] = torch.randn(size, generator=seeded, device=device, dtype=dtype)
        block(
            tokens[size],
            transformer_options={
                **transformer_options,
                "block": ("input", 1),
                "block_index": 0,
                "original_shape": [*x.shape],
                "activations_shape": [rows, channels, height, width],
            },
        )
        return torch.zeros_like(x)

    host = replace(environment, narrow=True)
    model = UNETS["sd15"].build(host)
    model.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, "benchmark_block", only_self_attention)
    return model, UNETS["sd15"].config_in(host)["context_dim"]
