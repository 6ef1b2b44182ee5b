"""The pictures of every variant, made batch by batch and kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from torch import Tensor

from . import metrics, sampling, yardsticks
from .effort import Effort, EffortWatch
from .pairs import Pairs
from .patches import PictureVariant
from .regimes import Regime
from .sampling import Batch, Trajectory

ROWS = 4
"""Pictures in one model call."""
PREDICTED = 2
"""Pictures whose steps are predicted by every variant: one batch."""


@dataclass(frozen=True)
class Made:
    """pictures: (count, 3, H, W) in [0, 1]. effort: of all of them together."""

    pictures: Tensor
    effort: Effort

    def per_picture(self) -> tuple[float, float]:
        """(rows, pairs)"""
        count = len(self.pictures)
        return self.effort.rows / count, self.effort.pairs / count


@dataclass(frozen=True)
class Bench:
    """model: plain. exact: the same in single precision. judge: the UNet in single precision, whose
    features are compared.

    kept: folder for what was made, so that an interruption costs one batch.
    """

    model: ModelPatcher
    exact: ModelPatcher
    judge: ModelPatcher
    pairs: Pairs
    regime: Regime
    kept: Path

    @cached_property
    def features(self) -> metrics.Features:
        return metrics.Features(self.judge, self.pairs.nothing)

    def first_run(self) -> tuple[Batch, Trajectory]:
        """Plain's run of the first pictures, step by step."""
        (batch,) = self.pairs.batches(ROWS, PREDICTED)

        def run() -> dict[str, Any]:
            return vars(sampling.sample(self.model, batch, self.regime))

        return batch, Trajectory(**self._keep(f"run-{PREDICTED}", run))

    def make(self, variant: PictureVariant, most: int) -> Made:
        """The variant's pictures of the first ``most`` pairs; all where there are fewer."""
        batches = self.pairs.batches(ROWS, most)
        made = [self._make_batch(variant, number, batch) for number, batch in enumerate(batches)]
        effort = sum((one.effort for one in made), Effort())
        return Made(torch.cat([one.pictures for one in made]), effort)

    def make_plain(self, most: int | None = None) -> Made:
        """Of all pairs where ``most`` is None."""
        return self.make(yardsticks.PLAIN, len(self.pairs.captions) if most is None else most)

    def _make_batch(self, variant: PictureVariant, number: int, batch: Batch) -> Made:
        """A node draws with the batch's number as its seed, so that its luck varies too."""

        def run() -> dict[str, Any]:
            watch = EffortWatch()
            patched = watch.attach(variant.patch(self.model, seed=number))
            latent = sampling.sample(patched, batch, self.regime.with_steps(variant.steps)).latent
            return {"pictures": sampling.pictures(self.model, latent), **asdict(watch.effort)}

        found = self._keep(f"{_file_name(variant.name)}-{number}-{len(batch.seeds)}", run)
        return Made(found.pop("pictures"), Effort(**found))

    def _keep(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        place = self.kept / f"{name}.pt"
        if not place.exists():
            self.kept.mkdir(parents=True, exist_ok=True)
            torch.save(make(), place)
        found: dict[str, Any] = torch.load(place)
        return found


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)
