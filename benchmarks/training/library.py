"""What scenes are composed of, on the device that trains."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from einops import rearrange
from PIL import Image
from torch import Tensor

from ..trained.layouts import SURFACES
from . import emoji


@dataclass(frozen=True)
class Library:
    """names: of the subjects, as captions have them. frames: (N, F, 4, side, side) uint8, with
    alpha; a picture has one frame. surfaces: (3, 3, height, width) uint8, in the order of
    ``layouts.SURFACES``.
    """

    names: list[str]
    frames: Tensor
    surfaces: Tensor

    @staticmethod
    def load(
        place: Path, moving: bool, device: torch.device | str = "cpu", most: int | None = None
    ) -> Library:
        """place: of the selection. moving: clips and not pictures. most: so many subjects."""
        with zipfile.ZipFile(place) as selection:
            chosen = [
                (name, f"{code}-moving" if moving else code)
                for name, code, has_clip in json.loads(selection.read(emoji.NAMES))
                if has_clip or not moving
            ][:most]
            sheets = [_decode(selection, code, "RGBA") for _, code in chosen]
            surfaces = [_decode(selection, name, "RGB") for name in SURFACES]
        frames = np.stack(
            [rearrange(one, "(f h) w c -> f c h w", h=one.shape[1]) for one in sheets]
        )
        return Library(
            [name for name, _ in chosen],
            torch.from_numpy(frames).to(device),
            torch.from_numpy(rearrange(np.stack(surfaces), "n h w c -> n c h w")).to(device),
        )


def _decode(selection: zipfile.ZipFile, name: str, mode: str) -> np.ndarray:
    with Image.open(io.BytesIO(selection.read(f"{name}.webp"))) as picture:
        return np.array(picture.convert(mode))
