"""Drawn clips as the video model sees them: some that were not used in training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from . import moving_scenes
from .moving_scenes import MovingScene

SIDE = 72
"""A drawn frame has this side; a random square of ``CROP`` is taken from it, the same in all
frames."""
CROP = 64
HELD_OUT_SEED = 1
"""Training had another one."""


def draw_held_out(count: int, word: str = "") -> list[MovingScene]:
    """The first clips with this word in their caption."""
    rng = np.random.default_rng(HELD_OUT_SEED)
    found: list[MovingScene] = []
    while len(found) < count:
        scene = moving_scenes.draw(rng, SIDE)
        if word in scene.caption:
            found.append(scene)
    return found


def crop(scenes: Sequence[MovingScene], side: int, generator: torch.Generator) -> Tensor:
    """Each cropped, perhaps mirrored, and shrunk: (B, 3, F, side, side) in [-1, 1]."""
    count = len(scenes)
    torch.randint(1, (count,), generator=generator)  # as training drew where a clip begins
    offsets = torch.randint(SIDE - CROP + 1, (count, 2), generator=generator).tolist()
    mirrored = torch.rand(count, generator=generator) < 0.5
    cropped = [
        torch.from_numpy(scene.pixels[:, top : top + CROP, left : left + CROP])
        for scene, (top, left) in zip(scenes, offsets, strict=True)
    ]
    frames = rearrange(torch.stack(cropped), "b f h w c -> b f c h w").float() / 127.5 - 1
    mirrored &= torch.tensor([scene.mirrors for scene in scenes])
    frames = torch.where(mirrored.view(-1, 1, 1, 1, 1), frames.flip(-1), frames)
    flat = frames.flatten(0, 1)  # (B·F, 3, CROP, CROP)
    if side != CROP:
        flat = F.interpolate(flat, (side, side), mode="bilinear", antialias=True)
    return rearrange(flat, "(b f) c h w -> b c f h w", b=count)
