"""Pictures drawn once and kept in the cache, and the batches that training takes from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from . import codec, scenes
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
        pictures = picked.permute(0, 3, 1, 2).float() / 127.5 - 1
        pictures = torch.where(mirrored[:, None, None, None], pictures.flip(3), pictures)
        if side == CROP:
            return pictures
        return F.interpolate(pictures, (side, side), mode="bilinear", antialias=True)


def load(folder: Path, count: int, seed: int) -> Dataset:
    """The pictures of this count and seed, drawn where they are not kept yet."""
    place = folder / f"scenes-{VERSION}-{count}-{seed}.npz"
    if not place.exists():
        rng = np.random.default_rng(seed)
        drawn = [scenes.draw(rng, SIDE) for _ in range(count)]
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
        return Dataset(
            torch.from_numpy(kept["pixels"]),
            [str(caption) for caption in kept["captions"]],
            torch.from_numpy(kept["mirrors"]),
        )
