"""A model whose transformer is attention and nothing else."""

from __future__ import annotations

from typing import Any

import torch
from comfy.ldm.modules.attention import optimized_attention
from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from torch import Tensor

from .diffusion_transformers import Clip
from .environment import Environment

CALLS = 8
"""In a model they follow other work that the GPU still does, so that it need not wait for the
processor. A first call waits for it."""


def count_calls(environment: Environment) -> int:
    """Attention calls in one call of the model, each as in a block of its own.

    One of full size on a processor, where it takes seconds.
    """
    return CALLS if environment.on_gpu or environment.narrow else 1


def build(clip: Clip, environment: Environment) -> ModelPatcher:
    """Attention at the clip's real lengths and heads, within ComfyUI's own sampling.

    Queries, keys and values are random and given: no projection, position or MLP takes time.
    """
    calls = count_calls(environment)
    config = clip.transformer.config_in(environment)
    heads: int = config["num_heads"]
    channels: int = config[clip.transformer.width] // heads
    device, dtype = environment.device, clip.transformer.dtype_in(environment)
    generator = torch.Generator(device).manual_seed(1)
    size = (1, heads, clip.stream.length, channels)
    q, k, v = (torch.randn(size, generator=generator, device=device, dtype=dtype) for _ in range(3))

    def only_attention(executor: WrapperExecutor, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        for block in range(calls):
            options = {**args[-1], "block_index": block, "block_type": "double"}
            optimized_attention(q, k, v, heads, skip_reshape=True, transformer_options=options)
        return torch.zeros_like(x)

    model = clip.transformer.narrowest(environment)
    model.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, "benchmark_attention", only_attention)
    return model
