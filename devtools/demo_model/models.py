"""ComfyUI's own UNet, CLIP and VAE classes, made narrow and given random weights.

The UNet has SD 1.5's blocks: four levels, self-attention, cross-attention and MLP in the first
three and in the middle. Only the widths differ. At 768 x 768 the 9216 tokens of the first level
make its self-attention the largest part of a step, as at larger sizes in SD 1.5 itself.
"""

from __future__ import annotations

from typing import ClassVar

import comfy.model_base
import comfy.model_management
import comfy.model_patcher
import comfy.model_sampling
import comfy.sd
import comfy.sd1_clip
import comfy.supported_models
import torch
from comfy.ldm.models.autoencoder import AutoencoderKL
from comfy.supported_models_base import ClipTarget

from .weights import fill

WIDTH = 64  # SD 1.5: 320 in the UNet, 768 in the text encoder

UNET = {
    "image_size": 32,
    "in_channels": 4,
    "out_channels": 4,
    "model_channels": WIDTH,
    "channel_mult": (1, 2, 4, 4),
    "num_res_blocks": [2, 2, 2, 2],
    "transformer_depth": [1, 1, 1, 1, 1, 1, 0, 0],
    "transformer_depth_output": [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0],
    "transformer_depth_middle": 1,
    "context_dim": WIDTH,
    "num_heads": 2,
    "use_spatial_transformer": True,
    "use_linear_in_transformer": False,
    "use_temporal_attention": False,
    "adm_in_channels": None,
    "legacy": False,
    "dtype": torch.float32,
}

TEXT_ENCODER = {
    "hidden_size": WIDTH,
    "intermediate_size": 4 * WIDTH,
    "projection_dim": WIDTH,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
}

VAE = {
    "embed_dim": 4,
    "ddconfig": {
        "double_z": True,
        "z_channels": 4,
        "resolution": 256,
        "in_channels": 3,
        "out_ch": 3,
        "ch": 32,
        "ch_mult": [1, 2, 2, 2],
        "num_res_blocks": 1,
        "attn_resolutions": [],
        "dropout": 0.0,
    },
}


class _PredictsPicture(comfy.model_sampling.ModelSamplingDiscrete, comfy.model_sampling.X0):
    """SD 1.5's sigmas, but the network's output is the picture itself.

    Random weights that predict noise would leave noise; these leave what the network draws.
    """


class _DemoConfig(comfy.supported_models.SD15):
    # Empty: SD 1.5's eight heads, which would be put in from here, are too many for this width.
    unet_extra_config: ClassVar[dict[str, int]] = {}


def _unet_gain(name: str) -> float:
    # Chosen by eye: stronger residual branches give shapes larger than the noise they start from.
    return 1.4 if "in_layers" in name else 1.0


def unet(seed: int) -> comfy.model_patcher.ModelPatcher:
    """MODEL: ComfyUI's ``UNetModel`` in its ``BaseModel``, as a patcher."""
    config = _DemoConfig(UNET)
    device = comfy.model_management.unet_offload_device()
    model = comfy.model_base.BaseModel(config, device=device)
    model.model_sampling = _PredictsPicture(config)
    fill(model.diffusion_model, seed, _unet_gain)
    return comfy.model_patcher.ModelPatcher(
        model, load_device=comfy.model_management.get_torch_device(), offload_device=device
    )


def clip(seed: int) -> comfy.sd.CLIP:
    """CLIP: SD 1.5's tokenizer and a narrow text encoder of its class."""
    target = ClipTarget(comfy.sd1_clip.SD1Tokenizer, comfy.sd1_clip.SD1ClipModel)
    encoder = comfy.sd.CLIP(target, model_options={"clip_l_model_config": TEXT_ENCODER})
    fill(encoder.cond_stage_model, seed)
    return encoder


def vae(seed: int) -> comfy.sd.VAE:
    """VAE: SD 1.5's ``AutoencoderKL``, which turns one latent pixel into 8 x 8 pixels."""
    weights = AutoencoderKL(**VAE)
    fill(weights, seed)
    return comfy.sd.VAE(sd=weights.state_dict(), config={"params": VAE})
