"""Lumina 2 with references behind its picture, as Ming-Image has them in a later ComfyUI."""

from __future__ import annotations

from functools import partial
from typing import Any

import comfy.conds
import torch
from comfy.model_base import BaseModel
from torch import Tensor

from ..comfyui_version import known
from .image_settings import LUMINA
from .small_model import References, SmallModel


class FramesBehind(known.Lumina2):
    """A stand-in: the later ``NextDiT`` embeds such frames as it does its picture, and appends
    them. Here this is done to what the tested ``NextDiT`` has put together.
    """

    conditioning: str

    def get_model(self, *args: Any, **kwargs: Any) -> BaseModel:
        model = super().get_model(*args, **kwargs)
        model.extra_conds = partial(_name_frames, model.extra_conds, self.conditioning)
        inner: Any = model.diffusion_model
        inner._forward = partial(_keep_frames, inner, inner._forward, self.conditioning)
        inner.patchify_and_embed = partial(_append_frames, inner, inner.patchify_and_embed)
        return model


class MingImage(FramesBehind):
    """Tells of its references as ComfyUI does from 0.38 on."""

    conditioning = "ref_frames"


class Untold(FramesBehind):
    """Tells of them by a name that these nodes do not know."""

    conditioning = "frames_of_a_later_version"


def _name_frames(prepare: Any, name: str, **given: Any) -> Any:
    frames = given.pop("reference_latents")
    return {**prepare(**given), name: comfy.conds.CONDList(frames)}


def _keep_frames(inner: Any, forward: Any, name: str, *args: Any, **given: Any) -> Tensor:
    inner.frames = given.pop(name)
    out: Tensor = forward(*args, **given)
    return out


def _append_frames(inner: Any, embed: Any, *args: Any, **given: Any) -> tuple[Any, ...]:
    """Their positions are those of the last tokens, which matters to no test."""
    sequence, mask, sizes, starts, rotations, zero = embed(*args, **given)
    for frame in inner.frames:
        patches = frame.unfold(2, 2, 2).unfold(3, 2, 2).permute(0, 2, 3, 4, 5, 1)
        tokens = inner.x_embedder(patches.flatten(3).flatten(1, 2))
        sequence = torch.cat([sequence, tokens.expand(len(sequence), -1, -1)], dim=1)
        rotations = torch.cat([rotations, rotations[:, -tokens.shape[1] :]], dim=1)
    return sequence, mask, sizes, starts, rotations, zero


MING_IMAGE, UNTOLD = (
    SmallModel(
        kind.__name__, kind, LUMINA, 16, (2, 2), 24, references=References(grids=((12, 20),))
    )
    for kind in (MingImage, Untold)
)
