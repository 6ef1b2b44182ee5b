"""Clips drawn once and kept in the cache, and the batches that training takes from them.

What ``dataset.py`` is for pictures.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from . import codec, drawings, moving_scenes
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
        return drawings.mirror_and_shrink(picked, mirrored, side)


def load(folder: Path, count: int, seed: int) -> Clips:
    """The clips of this count and seed, drawn where they are not kept yet."""
    place = folder / f"clips-{VERSION}-{count}-{seed}.npz"
    return Clips(*drawings.load(place, partial(moving_scenes.draw, side=SIDE), count, seed))
