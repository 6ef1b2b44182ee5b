"""Families that draw videos by a sound, a pose, a face, a camera's path, a motion or guides."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import comfy.ldm.wan.model as wan
import comfy.ldm.wan.model_animate as animate
import torch
from comfy.model_base import BaseModel
from torch import Generator, Tensor, nn

from ..comfyui_version import known
from . import video_settings as small
from .small_model import Conditioning, References, SmallModel, no_extras


class NarrowVoice(known.WAN21_HuMo):
    """HuMo with a narrow encoder of the voice, whose size no checkpoint's settings hold."""

    def get_model(self, *args: Any, **kwargs: Any) -> BaseModel:
        whole = wan.AudioProjModel

        def narrow(**settings: Any) -> nn.Module:
            return whole(**{**settings, "channels": 16, "intermediate_dim": 32})

        with patch.object(wan, "AudioProjModel", narrow):
            return super().get_model(*args, **kwargs)


class NarrowFace(known.WAN22_Animate):
    """Animate that reads a face's mean colour in place of 512 x 512 pixels."""

    def get_model(self, *args: Any, **kwargs: Any) -> BaseModel:
        with patch.object(animate, "EncoderApp", MeanColour):
            return super().get_model(*args, **kwargs)


class MeanColour(nn.Module):
    """Features of a picture, (B, 3, H, W) -> (B, width)."""

    def __init__(self, width: int, operations: Any, **where: Any) -> None:
        super().__init__()
        self.features = operations.Linear(3, width, **where)

    def forward(self, picture: Tensor) -> Tensor:
        features: Tensor = self.features(picture.mean(dim=(2, 3)))
        return features


def camera(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """The path of the camera, at eight pixels for a cell."""
    frames, height, width = size
    path = torch.randn(1, 3, frames, 8 * height, 8 * width, generator=generator)
    return {"camera_conditions": path, **seen_by_clip(generator, "clip_vision_output")}


def voice(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """What is spoken in each frame: eight moments, five layers, 16 features."""
    return {"audio_embed": torch.randn(1, size[0], 8, 5, 16, generator=generator)}


def speech(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """Sound, a pose, and 20 frames that came before."""
    frames, *sides = size
    return {
        "audio_embed": torch.randn(1, 25, 16, 4 * frames, generator=generator),
        "control_video": torch.randn(1, 16, *size, generator=generator),
        "reference_motion": torch.randn(1, 16, 20, *sides, generator=generator),
    }


def pose_and_face(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """For all frames of the latent but the first, which is the reference; a face has four each."""
    frames, *sides = size
    pose = torch.randn(1, 16, frames - 1, *sides, generator=generator)
    face = torch.randn(1, 3, 4 * (frames - 1), 4, 4, generator=generator)
    clip = seen_by_clip(generator, "clip_vision_output")
    return {"pose_video_latent": pose, "face_video_pixels": face, **clip}


def small_pose(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """Half as high and wide as the video."""
    frames, height, width = size
    pose = torch.randn(1, 16, frames, height // 2, width // 2, generator=generator)
    return {"pose_video_latent": pose, **seen_by_clip(generator, "clip_vision_output")}


def masked_pose(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """As large as the video, with masks for the pose, and for the reference and the video."""
    frames, *sides = size
    return {
        "pose_video_latent": torch.randn(1, 16, *size, generator=generator),
        "driving_mask_28ch": torch.randn(1, frames, 28, *sides, generator=generator),
        "ref_mask_28ch": torch.randn(1, frames + 1, 28, *sides, generator=generator),
    }


def music(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """Sound, where ComfyUI can deal a frame's tokens to its eight moments, and two pictures."""
    _, height, width = size
    heard = {"audio_embed": torch.randn(1, 20, 8, generator=generator)}
    names = ("clip_vision_output", "clip_vision_output_ref")
    seen = {name: value for each in names for name, value in seen_by_clip(generator, each).items()}
    return {**(heard if height * width // 4 % 8 == 0 else {}), **seen}


def seen_by_clip(generator: Generator, name: str) -> Conditioning:
    """A picture as CLIP sees it, beside the prompt."""
    seen = torch.randn(1, 5, 1280, generator=generator)
    return {name: SimpleNamespace(penultimate_hidden_states=seen)}


def earlier_sound(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """The voice to speak with."""
    return {"ref_audio": {"tokens": torch.randn(1, 3, 128, generator=generator)}}


def guide(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """The last frame of the latent, beyond ``size``, is a guide for an earlier moment."""
    tokens = size[-2] * size[-1]
    return {"keyframe_idxs": torch.randint(0, 64, (1, 3, tokens, 2), generator=generator)}


CLIP = (3, 6, 8)
SOUND = (8, 10, 16)
A_FRAME, LAST_FRAME = References(grids=()), References(grids=(), within=True)

# Wan's patches, and LTX-Video's.
Wan = partial(SmallModel, channels=16, patch=(1, 2, 2), prompt_width=24, grid=CLIP, pads=False)
Ltx = partial(SmallModel, channels=128, patch=(1, 1, 1), grid=CLIP)

GUIDED_VIDEOS = (
    Wan("Wan Camera", known.WAN21_Camera, small.WAN_CAMERA, extras=camera),
    Wan("Wan HuMo", NarrowVoice, small.WAN_HUMO, extras=voice, references=A_FRAME),
    Wan("Wan S2V", known.WAN22_S2V, small.WAN_S2V, extras=speech, references=A_FRAME),
    Wan("Wan Animate", NarrowFace, small.WAN_ANIMATE, extras=pose_and_face),
    Wan("Wan SCAIL", known.WAN21_SCAIL, small.WAN_SCAIL, extras=small_pose, references=A_FRAME),
    Wan(
        "Wan SCAIL 2",
        known.WAN21_SCAIL2,
        {**small.WAN_SCAIL, "model_type": "scail2"},
        extras=masked_pose,
        references=A_FRAME,
    ),
    Wan("WanDancer", known.WAN22_WanDancer, small.WAN_DANCER, extras=music),
    Ltx(
        "LTXV with guides",
        known.LTXV,
        small.LTXV,
        prompt_width=24,
        extras=guide,
        references=LAST_FRAME,
        mask="needed",
    ),
    Ltx("LTX-2", known.LTXAV, small.LTX_2, prompt_width=48, extras=earlier_sound, sound=SOUND),
    Ltx(
        "LTX-2 with guides",
        known.LTXAV,
        small.LTX_2,
        prompt_width=48,
        extras=guide,
        references=LAST_FRAME,
        sound=SOUND,
    ),
    Ltx(
        "LTX-2.3",
        known.LTXAV,
        small.LTX_23,
        prompt_width=96,
        extras=earlier_sound,
        sound=SOUND,
    ),
)
UNGUIDED_VIDEOS = tuple(
    replace(family, name=f"{family.name} alone", extras=no_extras, references=None, sound=())
    for family in GUIDED_VIDEOS
    if "guides" not in family.name
)
"""These are the same families with a prompt and nothing else."""
