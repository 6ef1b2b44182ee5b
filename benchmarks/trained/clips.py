"""Clips drawn once and kept in the cache, and the batches that training takes from them.

What ``dataset.py`` is for pictures.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from . import codec, moving_scenes
from .motion import FRAMES
from .recipe import Stage

COUNT = 3000
SIDE = 72
"""Of a kept frame; a random square of CROP is taken from it, the same in all frames."""
CROP = 64
VERSION = 1
"""Of the drawing code: another number draws anew."""


@dataclass(frozen=True)
class Clips:
    """pixels: (count, FRAMES, SIDE, SIDE, 3) uint8. mirrors: (count,) bool."""

    pixels: Tensor
    captions: list[str]
    mirrors: Tensor

    def batch(self, rows: Tensor, stage: Stage, generator: torch.Generator) -> Tensor:
        """Clips as long and as large as ``stage`` has them, (B, 3, F, H, W) in [-1, 1]."""
        return self.crops(rows, stage.tokens * codec.PIXELS_PER_TOKEN, stage.frames, generator)

    def largest(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Whole clips in crops that are not shrunk, (B, 3, FRAMES, CROP, CROP)."""
        return self.crops(rows, CROP, FRAMES, generator)

    def crops(self, rows: Tensor, side: int, frames: int, generator: torch.Generator) -> Tensor:
        """Some frames in a row of each clip, cropped and perhaps mirrored.

        (len(rows), 3, frames, side, side) in [-1, 1].
        """
        count = len(rows)
        firsts = torch.randint(FRAMES - frames + 1, (count,), generator=generator).tolist()
        offsets = torch.randint(SIDE - CROP + 1, (count, 2), generator=generator).tolist()
        mirrored = (torch.rand(count, generator=generator) < 0.5) & self.mirrors[rows]
        picked = torch.stack(
            [
                self.pixels[row, first : first + frames, top : top + CROP, left : left + CROP]
                for row, first, (top, left) in zip(rows.tolist(), firsts, offsets, strict=True)
            ]
        )  # (B, F, CROP, CROP, 3)
        clips = rearrange(picked, "b f h w c -> b c f h w").float() / 127.5 - 1
        clips = torch.where(mirrored[:, None, None, None, None], clips.flip(4), clips)
        if side == CROP:
            return clips
        flat = rearrange(clips, "b c f h w -> (b f) c h w")
        flat = F.interpolate(flat, (side, side), mode="bilinear", antialias=True)
        return rearrange(flat, "(b f) c h w -> b c f h w", b=count)


def load(folder: Path, count: int, seed: int) -> Clips:
    """The clips of this count and seed, drawn where they are not kept yet."""
    place = folder / f"clips-{VERSION}-{count}-{seed}.npz"
    if not place.exists():
        rng = np.random.default_rng(seed)
        drawn = [moving_scenes.draw(rng, SIDE) for _ in range(count)]
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = place.with_suffix(".part.npz")
        np.savez(
            unfinished,
            pixels=np.stack([scene.pixels for scene in drawn]),
            captions=np.array([scene.caption for scene in drawn]),
            mirrors=np.array([scene.mirrors for scene in drawn]),
        )
        unfinished.rename(place)
    with np.load(place) as kept:
        return Clips(
            torch.from_numpy(kept["pixels"]),
            [str(caption) for caption in kept["captions"]],
            torch.from_numpy(kept["mirrors"]),
        )
