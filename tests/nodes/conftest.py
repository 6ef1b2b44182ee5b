"""Narrow versions of ComfyUI's own UNets with random weights, and its own sampling."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import comfy.sample
import comfy.supported_models
import pytest
import torch
from comfy.model_patcher import ModelPatcher

COMMON = {
    "image_size": 32,
    "in_channels": 4,
    "out_channels": 4,
    "model_channels": 32,
    "num_res_blocks": [1, 1, 1],
    "channel_mult": [1, 2, 2],
    "context_dim": 32,
    "use_spatial_transformer": True,
    "legacy": False,
    "use_checkpoint": False,
    "use_temporal_attention": False,
    "use_temporal_resblock": False,
    "adm_in_channels": None,
    "num_heads": 4,
    "num_head_channels": -1,
    "use_linear_in_transformer": True,
}
SD15 = {
    **COMMON,
    "transformer_depth": [1, 1, 0],
    "transformer_depth_output": [1, 1, 1, 1, 0, 0],
    "transformer_depth_middle": 1,
    "use_linear_in_transformer": False,
}
SDXL = {
    **COMMON,
    "transformer_depth": [0, 2, 3],
    "transformer_depth_output": [0, 0, 2, 2, 3, 3],
    "transformer_depth_middle": 3,
    "num_classes": "sequential",
    "adm_in_channels": 2816,
}
SSD_1B = {**SDXL, "transformer_depth_output": [0, 0, 1, 2, 3, 1], "transformer_depth_middle": -1}
SVD = {
    **COMMON,
    "in_channels": 8,
    "transformer_depth": [1, 1, 0],
    "transformer_depth_output": [1, 1, 1, 1, 0, 0],
    "transformer_depth_middle": 1,
    "num_classes": "sequential",
    "adm_in_channels": 768,
    "use_temporal_attention": True,
    "use_temporal_resblock": True,
    "extra_ff_mix_layer": True,
    "use_spatial_context": True,
    "merge_strategy": "learned_with_images",
    "merge_factor": 0.0,
    "video_kernel_size": [3, 1, 1],
}
FLUX = {
    "image_model": "flux",
    "in_channels": 4,
    "out_channels": 4,
    "patch_size": 2,
    "vec_in_dim": 1280,
    "context_in_dim": 32,
    "hidden_size": 32,
    "mlp_ratio": 2.0,
    "num_heads": 2,
    "depth": 1,
    "depth_single_blocks": 1,
    "axes_dim": [4, 6, 6],
    "theta": 10000,
    "txt_ids_dims": [],
    "qkv_bias": True,
    "guidance_embed": True,
}
CONFIGS = {
    "SD15": (comfy.supported_models.SD15, SD15),
    "SDXL": (comfy.supported_models.SDXL, SDXL),
    "SSD1B": (comfy.supported_models.SSD1B, SSD_1B),
    "SVD": (comfy.supported_models.SVD_img2vid, SVD),
    "Flux": (comfy.supported_models.Flux, FLUX),
}


@cache
def make_unet(name: str, dtype: torch.dtype = torch.float32) -> ModelPatcher:
    """A model as ComfyUI's loaders return it. Its patcher is shared: nodes must not change it."""
    family, config = CONFIGS[name]
    model_config = family({**config, "dtype": dtype})
    model_config.unet_config = {**config, "dtype": dtype}
    model = model_config.get_model({}, device="cpu")
    generator = torch.Generator().manual_seed(0)
    for parameter in model.diffusion_model.parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        fan_in = parameter[0].numel() if parameter.ndim > 1 else 100
        parameter.data.copy_(noise * fan_in**-0.5 + (0.0 if parameter.ndim > 1 else 0.5))
    return ModelPatcher(model, torch.device("cpu"), torch.device("cpu"))


def sample(
    model: ModelPatcher,
    *,
    size: tuple[int, int] = (16, 16),
    batch: int = 1,
    steps: int = 2,
    cfg: float = 4.0,
    **options: Any,
) -> torch.Tensor:
    """Latents (batch, 4, *size) by ComfyUI's own sampler from a fixed seed and prompt."""
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(batch, 4, *size, generator=generator)
    pooled = torch.randn(1, 1280, generator=generator)
    prompts = [
        [[torch.randn(1, 7, 32, generator=generator), {"pooled_output": pooled}]] for _ in range(2)
    ]
    return comfy.sample.sample(
        model,
        noise,
        steps,
        cfg,
        options.pop("sampler", "euler"),
        "normal",
        prompts[0],
        prompts[1],
        torch.zeros_like(noise),
        seed=0,
        disable_pbar=True,
        **options,
    )


@pytest.fixture(scope="session")
def unet() -> Callable[..., ModelPatcher]:
    return make_unet


@pytest.fixture(scope="session")
def flux() -> ModelPatcher:
    """The smallest transformer: one block of each kind. More of them are in tests/transformers."""
    return make_unet("Flux")


@pytest.fixture(scope="session")
def denoise() -> Callable[..., torch.Tensor]:
    return sample


class AttentionLog:
    """Lengths of queries and keys that reached ComfyUI's attention function, in order."""

    def __init__(self) -> None:
        self.lengths: list[tuple[int, int]] = []

    def watch(self, model: ModelPatcher) -> ModelPatcher:
        """A clone whose attention calls are noted; the numbers are not touched."""

        def override(attention: Callable, q: Any, k: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
            self.lengths.append((q.shape[1], k.shape[1]))
            assert v.shape[1] == k.shape[1]
            return attention(q, k, v, *args, **kwargs)

        clone = model.clone()
        clone.model_options["transformer_options"]["optimized_attention_override"] = override
        return clone


@pytest.fixture
def attention_log() -> AttentionLog:
    return AttentionLog()
