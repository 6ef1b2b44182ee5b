"""Scenes as the models see them, kept for some steps: to make one takes as long as to train on it
once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Generator, Tensor

from ..trained import autoencoder
from ..trained.layouts import Layouts
from .captions import Captions
from .composing import compose
from .library import Library
from .recipes import Stage

REUSE = 16
"""A scene is seen about so often, each time with other noise."""
KEPT = 8
"""The pool has so many batches, so that the same scenes seldom meet."""
WITHOUT_CAPTION = 0.1
AT_ONCE = 2**25
"""Scenes of so many pixels are composed at once."""


@dataclass(frozen=True)
class Source:
    """Makes scenes. frames: of a clip, 1 for pictures. variety: see ``compose``."""

    library: Library
    captions: Captions
    frames: int
    variety: float = 1.0

    @staticmethod
    def load(
        place: Path,
        frames: int,
        device: torch.device,
        subjects: int | None = None,
        variety: float = 1.0,
    ) -> Source:
        """place: of the selection. subjects: most of them."""
        library = Library.load(place, frames > 1, device, subjects)
        captions = Captions.make(library.names, frames > 1, device)
        return Source(library, captions, frames, variety)

    def make(
        self, count: int, tokens: int, generator: Generator, frames: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Latents (count, 32, [frames,] tokens, tokens), unscaled, and prompts (count, 77, C).

        frames: of a clip, all by default.
        """
        frames = frames or self.frames
        subjects, moving = len(self.library.names), self.frames > 1
        layouts = Layouts.draw(count, subjects, generator, moving=moving)
        side = tokens * autoencoder.PIXELS_PER_TOKEN
        pixels = compose(layouts, self.library, side, frames, generator, self.variety)
        latents = autoencoder.encode(pixels)
        return latents if self.frames > 1 else latents[:, :, 0], self.captions.encode(layouts)


class Pool:
    """Of scenes of one stage; some are replaced for each batch."""

    def __init__(self, source: Source, stage: Stage, generator: Generator) -> None:
        self.source, self.stage, self.generator = source, stage, generator
        self.nothing = source.captions.encode_nothing()
        frames = stage.frames or source.frames
        most = AT_ONCE // (4 * frames * (stage.tokens * autoencoder.PIXELS_PER_TOKEN) ** 2)
        self.at_once = max(1, min(stage.batch, most))
        made = [self._make() for _ in range(-(-KEPT * stage.batch // self.at_once))]
        self.latents, self.prompts = (torch.cat(one) for one in zip(*made, strict=True))
        self.due, self.oldest = 0.0, 0

    def draw(self) -> tuple[Tensor, Tensor]:
        """Latents and prompts of one batch; some have the empty prompt."""
        self.due += self.stage.batch / REUSE
        while self.due >= self.at_once:
            places = slice(self.oldest, self.oldest + self.at_once)
            self.latents[places], self.prompts[places] = self._make()
            self.oldest = (self.oldest + self.at_once) % len(self.latents)
            self.due -= self.at_once
        device = self.latents.device
        rows = torch.randperm(len(self.latents), generator=self.generator, device=device)
        rows = rows[: self.stage.batch]
        unprompted = torch.rand(len(rows), 1, 1, generator=self.generator, device=device)
        prompts = torch.where(unprompted < WITHOUT_CAPTION, self.nothing, self.prompts[rows])
        return self.latents[rows], prompts

    def _make(self) -> tuple[Tensor, Tensor]:
        stage = self.stage
        return self.source.make(self.at_once, stage.tokens, self.generator, stage.frames)
