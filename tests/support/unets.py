"""Narrow versions of ComfyUI's own UNets with random weights, and its smallest transformer."""

from __future__ import annotations

from functools import cache, partial

import comfy.supported_models
import torch
from comfy.model_patcher import ModelPatcher

from benchmarks.random_models import build_model, fill_weights

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
SD15_SHALLOW = {
    **SD15,
    "channel_mult": [1],
    "num_res_blocks": [1],
    "transformer_depth": [1],
    "transformer_depth_output": [1, 1],
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
SD15_WIDE = {**SD15, "model_channels": 64, "num_heads": 1}
"""Its heads have 64 and 128 channels, as those of SDXL and of transformers."""
FLUX_WIDE = {**FLUX, "hidden_size": 128, "num_heads": 1, "axes_dim": [16, 56, 56]}
CONFIGS = {
    "SD15": (comfy.supported_models.SD15, SD15),
    "SD15 shallow": (comfy.supported_models.SD15, SD15_SHALLOW),
    "SDXL": (comfy.supported_models.SDXL, SDXL),
    "SSD1B": (comfy.supported_models.SSD1B, SSD_1B),
    "SVD": (comfy.supported_models.SVD_img2vid, SVD),
    "Flux": (comfy.supported_models.Flux, FLUX),
    "SD15 wide": (comfy.supported_models.SD15, SD15_WIDE),
    "Flux wide": (comfy.supported_models.Flux, FLUX_WIDE),
}


@cache
def build_unet(name: str, dtype: torch.dtype = torch.float32) -> ModelPatcher:
    """A model as ComfyUI's loaders return it. Its patcher is shared: nodes must not change it."""
    return build_model(*CONFIGS[name], fill=partial(fill_weights, scale=0.5), dtype=dtype)
