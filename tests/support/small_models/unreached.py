"""Families whose attention no node can reach, or whose tokens lie on no grid."""

from __future__ import annotations

from functools import partial
from typing import Any
from unittest.mock import patch

import comfy.ldm.ace.model as ace
import torch
from comfy.model_base import BaseModel
from torch import Generator

from ..comfyui_version import known
from .small_model import Conditioning, SmallModel
from .video_settings import WAN

PIXART: dict[str, Any] = {
    "image_model": "pixart_sigma",
    "num_heads": 2,
    "patch_size": 2,
    "hidden_size": 64,
    "in_channels": 4,
    "depth": 2,
    "model_max_length": 16,
    "input_size": 32,
    "pe_interpolation": 1,
    "micro_condition": False,
    "caption_channels": 24,
}
HUNYUAN_DIT: dict[str, Any] = {
    "image_model": "hydit",
    "depth": 4,
    "hidden_size": 64,
    "num_heads": 2,
    "mlp_ratio": 2.0,
    "text_states_dim": 24,
    "text_states_dim_t5": 16,
    "text_len": 7,
    "text_len_t5": 5,
}
ERNIE: dict[str, Any] = {
    "image_model": "ernie",
    "hidden_size": 64,
    "num_attention_heads": 2,
    "num_layers": 2,
    "ffn_hidden_size": 128,
    "text_in_dim": 24,
    "rope_axes_dim": (8, 12, 12),
}
ACE: dict[str, Any] = {
    "audio_model": "ace",
    "attention_head_dim": 32,
    "inner_dim": 64,
    "num_attention_heads": 2,
    "num_layers": 2,
    "mlp_ratio": 2.0,
    "patch_size": [16, 1],
    "text_embedding_dim": 24,
    "ssl_latent_dims": [16, 16],
    "lyric_encoder_vocab_size": 32,
    "lyric_hidden_size": 32,
}
HUNYUAN_3D: dict[str, Any] = {
    "image_model": "hunyuan3d2",
    "in_channels": 64,
    "context_in_dim": 24,
    "hidden_size": 64,
    "mlp_ratio": 2.0,
    "num_heads": 2,
    "depth": 2,
    "depth_single_blocks": 2,
}
SEED_VR2: dict[str, Any] = {
    "image_model": "seedvr2",
    "vid_dim": 64,
    "txt_in_dim": 24,
    "heads": 2,
    "head_dim": 32,
    "num_layers": 2,
    "mm_layers": 1,
    "norm_eps": 1e-5,
    "rope_dim": 32,
    "mlp_type": "swiglu",
    "vid_out_norm": True,
}


class NarrowLyrics(known.ACEStep):
    """ACE-Step with a narrow lyric encoder, whose size no checkpoint's settings hold."""

    def get_model(self, *args: Any, **kwargs: Any) -> BaseModel:
        encoder = partial(ace.LyricEncoder, output_size=32, linear_units=32, num_blocks=1)
        with patch.object(ace, "LyricEncoder", encoder):
            return super().get_model(*args, **kwargs)


def second_encoder(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """HunyuanDiT's T5 beside its CLIP, each with a mask."""
    return {
        "attention_mask": torch.ones(1, 7, dtype=torch.long),
        "conditioning_mt5xl": torch.randn(1, 5, 16, generator=generator),
        "attention_mask_mt5xl": torch.ones(1, 5, dtype=torch.long),
    }


def lyrics(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """Numbers of syllables."""
    return {"conditioning_lyrics": torch.randint(0, 32, (1, 6), generator=generator)}


def low_quality(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """The video to restore, and where it is given."""
    return {"condition": torch.randn(1, 17, *size, generator=generator)}


def driving_video(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """A pose for each frame of the latent but the first, which is the reference."""
    frames, *sides = size
    return {"pose_video_latent": torch.randn(1, 16, frames - 1, *sides, generator=generator)}


UNREACHED = (
    SmallModel("PixArt", known.PixArtSigma, PIXART, 4, (2, 2), 24, grid=(18, 16)),
    SmallModel("HunyuanDiT", known.HunyuanDiT, HUNYUAN_DIT, 4, (2, 2), 24, second_encoder),
    SmallModel("ERNIE-Image", known.ErnieImage, ERNIE, 128, (1, 1), 24),
    SmallModel("ACE-Step", NarrowLyrics, ACE, 8, (16, 1), 24, lyrics, grid=(1, 40)),
    SmallModel("Hunyuan3D 2", known.Hunyuan3Dv2, HUNYUAN_3D, 64, (1,), 24, grid=(40,)),
    SmallModel("SeedVR2", known.SeedVR2, SEED_VR2, 16, (1, 2, 2), 24, low_quality, grid=(3, 6, 8)),
    SmallModel(
        "Wan Animate 2",
        known.WAN_Animate2,
        {**WAN, "model_type": "animate2", "in_dim": 36},
        16,
        (1, 2, 2),
        24,
        driving_video,
        grid=(3, 6, 8),
    ),
    SmallModel(
        "Wan, autoregressive", known.WAN21_CausalAR_T2V, WAN, 16, (1, 2, 2), 24, grid=(3, 6, 8)
    ),
)
