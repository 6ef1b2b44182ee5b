"""Pictures drawn once and kept in the cache, and the batches that training takes from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from . import codec, drawings, scenes
from .recipe import Stage

COUNT = 6000
SIDE = 144
"""Of a kept picture; a random square of CROP is taken from it."""
CROP = 128
VERSION = 1
"""Of the drawing code: another number draws anew."""


@dataclass(frozen=True)
class Dataset:
    """pixels: (count, SIDE, SIDE, 3) uint8. mirrors: (count,) bool, see scenes.Scene."""

    pixels: Tensor
    captions: list[str]
    mirrors: Tensor

    def batch(self, rows: Tensor, stage: Stage, generator: torch.Generator) -> Tensor:
        """Pictures as large as ``stage`` has them: (len(rows), 3, H, W) in [-1, 1]."""
        return self.crops(rows, stage.tokens * codec.PIXELS_PER_TOKEN, generator)

    def largest(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Crops that are not shrunk: (len(rows), 3, CROP, CROP)."""
        return self.crops(rows, CROP, generator)

    def crops(self, rows: Tensor, side: int, generator: torch.Generator) -> Tensor:
        """Pictures in [-1, 1], each cropped and perhaps mirrored: (len(rows), 3, side, side)."""
        count = len(rows)
        offsets = torch.randint(SIDE - CROP + 1, (count, 2), generator=generator).tolist()
        mirrored = (torch.rand(count, generator=generator) < 0.5) & self.mirrors[rows]
        picked = torch.stack(
            [
                self.pixels[row, top : top + CROP, left : left + CROP]
                for row, (top, left) in zip(rows.tolist(), offsets, strict=True)
            ]
        )  # (B, CROP, CROP, 3)
        return drawings.mirror_and_shrink(picked, mirrored, side)


def load(folder: Path, count: int, seed: int) -> Dataset:
    """The pictures of this count and seed, drawn where they are not kept yet."""
    place = folder / f"scenes-{VERSION}-{count}-{seed}.npz"
    return Dataset(*drawings.load(place, partial(scenes.draw, side=SIDE), count, seed))
