"""From nothing to a file of weights: draws the examples, trains, and keeps what it has."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch
from rich.console import Console

from ..waiting import waiting
from . import codec
from .batches import Batches
from .denoising import Denoising
from .examples import SEED, SOURCES, Examples
from .keeping import KeptTraining
from .network import Shape, build_network
from .recipe import Recipe
from .state import TrainingState
from .training import Trainer
from .unet import UNetShape

SCALED_BY = 1000
"""How many of the examples the latent's scales are computed from."""


@dataclass(frozen=True)
class TrainingRun:
    """folder: for the examples and the checkpoint. device: where to train. examples: how many,
    by default as many as the published weights saw. dtype: what the network computes in.
    """

    recipe: Recipe
    folder: Path
    device: torch.device
    shape: Shape = field(default_factory=UNetShape)
    examples: int | None = None
    dtype: torch.dtype = torch.bfloat16

    @property
    def checkpoint(self) -> Path:
        return self.folder / f"training-{self.shape.kind}.pt"


def train(
    run: TrainingRun, place: Path, console: Console, until: int | None = None
) -> TrainingState:
    """Train to the end, from where the folder's checkpoint is if it has one.

    place: of the weights. until: a step to stop at before the end.
    """
    source = SOURCES[run.shape.kind]
    with waiting(console, "Drawing the examples and encoding their captions"):
        data = source.load(run.folder, run.examples or source.count, SEED)
        training = _prepare(run, data)
    return training.complete(place, console, until)


def _prepare(run: TrainingRun, data: Examples) -> KeptTraining:
    rows = torch.arange(min(SCALED_BY, len(data.captions)))
    scales = codec.measure_scales(data.largest(rows, torch.Generator().manual_seed(0)))
    model = build_network(run.shape, scales, seed=run.recipe.seed, device=run.device)
    network = model.model.diffusion_model
    network.requires_grad_(True)
    objective = Denoising(Batches.make(model, data, run.recipe, run.folder), run.dtype)
    state = TrainingState.start(network, run.recipe)
    return KeptTraining(Trainer(objective, run.recipe), state, run.shape, scales, run.checkpoint)
