"""Families that draw videos."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import comfy.ldm.anima.model as anima
import torch
from comfy.model_base import BaseModel
from torch import Generator

from ..comfyui_version import known
from . import video_settings as small
from .guided_videos import GUIDED_VIDEOS
from .images import pooled
from .small_model import Conditioning, References, SmallModel


class SmallAdapter(known.Anima):
    """Anima with a narrow adapter of its text encoder, whose size no checkpoint's settings hold."""

    def get_model(self, *args: Any, **kwargs: Any) -> BaseModel:
        adapter = partial(
            anima.LLMAdapter, source_dim=24, target_dim=24, model_dim=32, num_layers=1, num_heads=2
        )
        with patch.object(anima, "LLMAdapter", adapter):
            return super().get_model(*args, **kwargs)


def first_frame(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """The picture to start from: its latents, and what CLIP sees in it."""
    seen = SimpleNamespace(penultimate_hidden_states=torch.randn(1, 5, 1280, generator=generator))
    frame = torch.randn(1, 16, *size, generator=generator)
    return {"clip_vision_output": seen, "concat_latent_image": frame}


def control_video(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """VACE's second video."""
    frames = torch.randn(1, 32, *size, generator=generator)
    return {"vace_frames": [frames], "vace_mask": [torch.ones(1, 64, *size)]}


def letters_and_vision(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """The text to be drawn, as bytes, and what SigLIP sees in the picture to start from."""
    seen = SimpleNamespace(last_hidden_state=torch.randn(1, 5, 16, generator=generator))
    letters = torch.randn(1, 4, 1472, generator=generator)
    seen_and_read = {"clip_vision_output": seen, "conditioning_byt5small": letters}
    return {**pooled(generator, size), **seen_and_read}


def minimax_keyframe(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """The first frame, filled up as the video is."""
    sides = (side + side % 2 for side in size[-2:])
    frame = torch.randn(1, 24, 1, *sides, generator=generator)
    return {"minimax_keyframes": [{"resolved_frame_index": 0, "latent": frame}]}


def minimax_references(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """A picture of two by three tokens, and a sound of three moments in two channels."""
    picture = torch.randn(1, 24, 1, 4, 6, generator=generator)
    sound = torch.randn(1, 32, 2, 3, generator=generator)
    return {
        "minimax_refs": [
            {"kind": "image", "latent": picture, "latent_h": 4, "latent_w": 6},
            {"kind": "audio", "audio_latent": sound, "ref_audio_t": 3},
        ]
    }


FLAT, DOT = (1, 2, 2), (1, 1, 1)
CLIP = (3, 6, 8)

VIDEOS = (
    SmallModel("Wan 2.1 T2V", known.WAN21_T2V, small.WAN, 16, FLAT, 24, grid=CLIP),
    SmallModel(
        "Wan 2.1 I2V",
        known.WAN21_I2V,
        {**small.WAN, "model_type": "i2v", "in_dim": 36},
        16,
        FLAT,
        24,
        first_frame,
        grid=CLIP,
    ),
    SmallModel(
        "Wan 2.2 TI2V",
        known.WAN22_T2V,
        {**small.WAN, "in_dim": 48, "out_dim": 48},
        48,
        FLAT,
        24,
        grid=CLIP,
    ),
    SmallModel(
        "Wan with a reference first",
        known.WAN21_FunControl2V,
        {**small.WAN, "in_dim_ref_conv": 16},
        16,
        FLAT,
        24,
        references=References(grids=()),
        grid=CLIP,
        pads=False,
    ),
    SmallModel(
        "Wan with references last",
        known.WAN21_T2V,
        small.WAN,
        16,
        FLAT,
        24,
        references=References(key="context_latents"),
        grid=CLIP,
    ),
    SmallModel(
        "Wan with frames behind",
        known.WAN21_T2V,
        small.WAN,
        16,
        FLAT,
        24,
        references=References(grids=(), key="time_dim_concat", listed=False),
        grid=CLIP,
        pads=False,
    ),
    SmallModel(
        "Wan VACE",
        known.WAN21_Vace,
        {**small.WAN, "model_type": "vace", "vace_layers": 1, "vace_in_dim": 96},
        16,
        FLAT,
        24,
        control_video,
        grid=CLIP,
        pads=False,
    ),
    SmallModel(
        "HunyuanVideo",
        known.HunyuanVideo,
        small.HUNYUAN_VIDEO,
        16,
        FLAT,
        24,
        pooled,
        grid=CLIP,
        pads=False,
    ),
    SmallModel(
        "HunyuanVideo with a reference",
        known.HunyuanVideo,
        small.HUNYUAN_VIDEO,
        16,
        FLAT,
        24,
        pooled,
        References(grids=(), key="ref_latent", listed=False),
        grid=CLIP,
        batches=False,
        pads=False,
    ),
    SmallModel(
        "HunyuanVideo 1.5",
        known.HunyuanVideo15,
        small.HUNYUAN_VIDEO_15,
        32,
        DOT,
        24,
        letters_and_vision,
        grid=CLIP,
    ),
    SmallModel("LTXV", known.LTXV, small.LTXV, 128, DOT, 24, mask="needed", grid=CLIP),
    SmallModel("Cosmos", known.CosmosT2V, small.COSMOS_VIDEO, 16, FLAT, 24, grid=CLIP, pads=False),
    SmallModel("Cosmos Predict2", known.CosmosT2IPredict2, small.PREDICT2, 16, FLAT, 24, grid=CLIP),
    SmallModel("Anima", SmallAdapter, {**small.PREDICT2, "image_model": "anima"}, 16, FLAT, 24),
    SmallModel(
        "Mochi", known.GenmoMochi, small.MOCHI, 12, FLAT, 24, mask="needed", grid=CLIP, pads=False
    ),
    SmallModel("CogVideoX", known.CogVideoX_T2V, small.COGVIDEO, 16, FLAT, 24, grid=CLIP),
    SmallModel(
        "CogVideoX 1.5",
        known.CogVideoX_T2V,
        {**small.COGVIDEO, "patch_size_t": 2},
        16,
        (2, 2, 2),
        24,
        grid=CLIP,
    ),
    SmallModel(
        "Kandinsky 5",
        known.Kandinsky5,
        small.KANDINSKY,
        16,
        FLAT,
        24,
        pooled,
        grid=CLIP,
        pads=False,
    ),
    SmallModel(
        "Kandinsky 5 Image",
        known.Kandinsky5Image,
        {**small.KANDINSKY, "visual_embed_dim": 64},
        16,
        (2, 2),
        24,
        pooled,
        pads=False,
    ),
    SmallModel(
        "MiniMax H3",
        known.MiniMaxH3,
        small.MINIMAX_H3,
        24,
        FLAT,
        24,
        minimax_keyframe,
        grid=CLIP,
        batches=False,
        sound=(32, 2, 5),
    ),
    SmallModel(
        "MiniMax H3 with references",
        known.MiniMaxH3,
        small.MINIMAX_H3,
        24,
        FLAT,
        24,
        minimax_references,
        grid=CLIP,
        batches=False,
        sound=(32, 2, 5),
    ),
    *GUIDED_VIDEOS,
)
