"""What training needs of its data, and where each kind of model gets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from . import clips, dataset
from .recipe import Stage

SEED = 0
"""Of the examples that models are trained on."""


class Examples(Protocol):
    """Pictures or clips, numbered as their captions are."""

    @property
    def captions(self) -> list[str]: ...

    def batch(self, rows: Tensor, stage: Stage, generator: torch.Generator) -> Tensor:
        """As large as ``stage`` has them: (len(rows), 3, ..., H, W) in [-1, 1]."""

    def largest(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """As large as they are kept."""


@dataclass(frozen=True)
class Source:
    """load: examples by folder, count and seed. count: how many the published weights saw."""

    load: Callable[[Path, int, int], Examples]
    count: int


PICTURES = Source(dataset.load, dataset.COUNT)
CLIPS = Source(clips.load, clips.COUNT)
SOURCES = {"unet": PICTURES, "flux": PICTURES, "wan": CLIPS}
"""By kind of network."""
