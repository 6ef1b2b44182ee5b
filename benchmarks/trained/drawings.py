"""What datasets of drawn pictures and of drawn clips share: keeping them, mirroring, shrinking."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from numpy.random import Generator
from torch import Tensor


class Drawn(Protocol):
    """A scene, still or moving."""

    @property
    def caption(self) -> str: ...

    @property
    def pixels(self) -> Any:
        """(..., side, side, 3) uint8."""

    @property
    def mirrors(self) -> bool:
        """Whether its mirror image fits the caption as well."""


class Drawings(NamedTuple):
    """pixels: (count, ..., side, side, 3) uint8. mirrors: (count,) bool."""

    pixels: Tensor
    captions: list[str]
    mirrors: Tensor


def load(place: Path, draw: Callable[[Generator], Drawn], count: int, seed: int) -> Drawings:
    """Drawn one after the other from one seed, where ``place`` does not keep them yet."""
    if not place.exists():
        rng = np.random.default_rng(seed)
        drawn = [draw(rng) for _ in range(count)]
        place.parent.mkdir(parents=True, exist_ok=True)
        unfinished = place.with_suffix(".part.npz")
        np.savez(
            unfinished,
            pixels=np.stack([scene.pixels for scene in drawn]),
            captions=np.array([scene.caption for scene in drawn]),
            mirrors=np.array([scene.mirrors for scene in drawn]),
        )
        unfinished.rename(place)
    with np.load(place) as kept:
        return Drawings(
            torch.from_numpy(kept["pixels"]),
            [str(caption) for caption in kept["captions"]],
            torch.from_numpy(kept["mirrors"]),
        )


def mirror_and_shrink(picked: Tensor, mirrored: Tensor, side: int) -> Tensor:
    """As a model sees them.

    Args:
        picked: (B, ..., S, S, 3) uint8, where ... are the frames of clips.
        mirrored: (B,) bool.
        side: to which they are shrunk.

    Returns (B, 3, ..., side, side) in [-1, 1].
    """
    pictures = rearrange(picked, "b ... h w c -> b c ... h w").float() / 127.5 - 1
    turned = mirrored.view(-1, *[1] * (pictures.ndim - 1))
    pictures = torch.where(turned, pictures.flip(-1), pictures)
    if side == picked.shape[-2]:
        return pictures
    flat = pictures.movedim(1, -3)  # (B, ..., 3, S, S)
    frames = flat.shape[:-3]
    shrunk = F.interpolate(flat.flatten(0, -4), (side, side), mode="bilinear", antialias=True)
    return shrunk.unflatten(0, frames).movedim(-3, 1)
