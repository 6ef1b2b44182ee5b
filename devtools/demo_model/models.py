"""ComfyUI's own UNet, CLIP and VAE classes, made narrow and given random weights.

The UNet has SD 1.5's blocks: four levels, self-attention, cross-attention and MLP in the first
three and in the middle. Only the widths differ. At 768 x 768 the 9216 tokens of the first level
make its self-attention the largest part of a step, as at larger sizes in SD 1.5 itself.
"""

from __future__ import annotations

from functools import lru_cache, partial

import comfy.model_management
import comfy.model_sampling
import comfy.sd
import comfy.supported_models
import torch
from comfy.ldm.models.autoencoder import AutoencoderKL
from comfy.model_patcher import ModelPatcher

from benchmarks.random_models import build_model
from benchmarks.random_text_encoder import build_text_encoder

from .weights import fill_smoothly

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


@lru_cache(maxsize=1)
def build(seed: int) -> tuple[ModelPatcher, comfy.sd.CLIP, comfy.sd.VAE]:
    """MODEL, CLIP and VAE: the same ones for all prompts, as a server keeps a checkpoint's."""
    return _build_unet(seed), _build_text_encoder(seed), _build_vae(seed)


def _build_unet(seed: int) -> ModelPatcher:
    """ComfyUI's ``UNetModel`` in its ``BaseModel``."""
    # Gain chosen by eye: stronger residual branches give shapes larger than the noise they start
    # from.
    fill = partial(fill_smoothly, gains={"in_layers": 1.4})
    model: ModelPatcher = build_model(
        comfy.supported_models.SD15,
        UNET,
        fill=fill,
        seed=seed,
        device=comfy.model_management.unet_offload_device(),
        load_device=comfy.model_management.get_torch_device(),
    )
    model.model.model_sampling = _PredictsPicture(model.model.model_config)
    return model


def _build_text_encoder(seed: int) -> comfy.sd.CLIP:
    """SD 1.5's tokenizer and a narrow text encoder of its class."""
    encoder: comfy.sd.CLIP = build_text_encoder(TEXT_ENCODER, fill_smoothly, seed)
    return encoder


def _build_vae(seed: int) -> comfy.sd.VAE:
    """SD 1.5's ``AutoencoderKL``, which turns one latent pixel into 8 x 8 pixels."""
    weights = AutoencoderKL(**VAE)
    fill_smoothly(weights, torch.Generator().manual_seed(seed))
    return comfy.sd.VAE(sd=weights.state_dict(), config={"params": VAE})
