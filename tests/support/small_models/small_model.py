"""A small model of one family of transformers: ComfyUI's own class with few and narrow layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import torch
from comfy.model_patcher import ModelPatcher
from torch import Generator, Tensor

from benchmarks.random_models import build_model

from ..comfyui_version import leave_out
from .first_versions import leave_out_if_lacking

Conditioning = dict[str, Any]
Extras = Callable[[Generator, tuple[int, ...]], Conditioning]


def no_extras(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """Nothing beside the prompt."""
    return {}


@dataclass(frozen=True)
class References:
    """Reference latents, given beside the prompt.

    grids: tokens of each, as (height, width); none: one as large as the picture. key: of the
    conditioning. listed: it holds a list of latents rather than one. frames: of each, as many as
    the video has if 0. within: they are the last frames of the latent itself, and no conditioning.
    options: what else must be given with them.
    """

    grids: tuple[tuple[int, int], ...] = ((2, 3), (3, 2))
    key: str = "reference_latents"
    listed: bool = True
    frames: int = 1
    within: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class SmallModel:
    """What it takes to build and to sample one family.

    config: its class in ``comfy.supported_models``; None: this ComfyUI lacks it. settings: what
    ComfyUI would read from a checkpoint, made small. channels: of the latent. patch: cells of the
    latent per token, one number per axis; with three axes (frames first) latents are (B, C, T, H,
    W), else (B, C, H, W). prompt_width: features per token of the prompt. extras: further
    conditioning, from a generator and the latent's size. mask: whether a prompt may bring, or
    needs, an ``attention_mask``. grid: of the usual latent, in tokens; axes that are not named have
    one. batches: ComfyUI itself can compute more than one latent per call. pads: it fills up a
    latent that the patch does not divide. sound: size of the latent of sound that is drawn with the
    video, if any.
    """

    name: str
    config: Any
    settings: Mapping[str, Any]
    channels: int
    patch: tuple[int, ...]
    prompt_width: int
    extras: Extras = no_extras
    references: References | None = None
    mask: Literal["", "possible", "needed"] = ""
    grid: tuple[int, ...] = (6, 8)
    batches: bool = True
    pads: bool = True
    sound: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.name

    @cache  # noqa: B019
    def build(self) -> ModelPatcher:
        """As ComfyUI's loaders return it; shared, so nobody may change it.

        A test that asks an older ComfyUI for a model that it lacks is left out.
        """
        leave_out_if_lacking(self.name)
        if self.config is None:
            leave_out(self.name, None)
        return build_model(self.config, self.settings)

    @property
    def is_video(self) -> bool:
        return len(self.grid) > 2

    def token_grid(self, *grid: int) -> tuple[int, ...]:
        """One number per axis; the usual grid if none is named."""
        grid = grid or self.grid
        return (1,) * (len(self.patch) - len(grid)) + grid

    def latent_size(self, *grid: int) -> tuple[int, ...]:
        """Of the latent that becomes this many tokens, one number per axis."""
        pairs = zip(self.token_grid(*grid), self.patch, strict=True)
        return tuple(side * cells for side, cells in pairs)

    def reference_sizes(self, size: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Of the reference latents beside a latent of ``size``."""
        if self.references is None:
            return []
        if not self.references.frames:
            return [size]
        same = (*[1] * (len(size) - 2), *size[-2:])
        return [self.latent_size(*grid) for grid in self.references.grids] or [same]

    def reference_conditioning(self, generator: Generator, size: tuple[int, ...]) -> Conditioning:
        """{} for a family without references."""
        if self.references is None or self.references.within:
            return {}
        latents = [
            torch.randn(1, self.channels, *sides, generator=generator)
            for sides in self.reference_sizes(size)
        ]
        value: list[Tensor] | Tensor = latents if self.references.listed else latents[0]
        return {self.references.key: value, **self.references.options}
