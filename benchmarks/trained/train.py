"""From nothing to a file of weights: draws the examples, trains, and keeps what it has."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch
from rich.console import Console

from ..waiting import waiting
from . import codec, weights
from .batches import Batches
from .denoising import Denoising
from .examples import SEED, SOURCES, Examples
from .keeping import KeptTraining
from .log import PartLog
from .network import Shape, build_network
from .recipe import Recipe
from .state import TrainingState
from .training import Trainer
from .unet import UNetShape

SCALED_BY = 1000
"""How many of the examples the latent's scales are computed from."""


@dataclass(frozen=True)
class TrainingRun:
    """parts: follow one another, see ``recipe.ON_CPU``. folder: for the examples, the checkpoints
    and the weights of all parts but the last. device: where to train. examples: how many, by
    default as many as the published weights saw. dtype: what the network computes in.
    """

    parts: tuple[Recipe, ...]
    folder: Path
    device: torch.device
    shape: Shape = field(default_factory=UNetShape)
    examples: int | None = None
    dtype: torch.dtype = torch.bfloat16


def train(
    run: TrainingRun, place: Path, console: Console, until: int | None = None
) -> TrainingState:
    """Train to the end, from where the folder's checkpoints are if it has some.

    place: of the weights. until: a step of the last part to stop at before its end.
    """
    source, kind = SOURCES[run.shape.kind], run.shape.kind
    with waiting(console, "Drawing the examples and encoding their captions"):
        data = source.load(run.folder, run.examples or source.count, SEED)
    before: tuple[PartLog, ...] = ()
    start = _build_untrained(run, data)
    *earlier, last = run.parts
    for number, recipe in enumerate(earlier, start=1):
        end_of_part = run.folder / f"{kind}-part-{number}" / place.name
        state = _prepare(run, recipe, data, start, before).complete(end_of_part, console)
        before = (*before, state.describe(recipe))
        start = weights.read(end_of_part)
    return _prepare(run, last, data, start, before).complete(place, console, until)


def _build_untrained(run: TrainingRun, data: Examples) -> weights.Stored:
    rows = torch.arange(min(SCALED_BY, len(data.captions)))
    scales = codec.measure_scales(data.largest(rows, torch.Generator().manual_seed(0)))
    model = build_network(run.shape, scales, seed=run.parts[0].seed)
    tensors = dict(model.model.diffusion_model.named_parameters())
    return weights.Stored(run.shape, scales, tensors)


def _prepare(
    run: TrainingRun,
    recipe: Recipe,
    data: Examples,
    start: weights.Stored,
    before: tuple[PartLog, ...],
) -> KeptTraining:
    checkpoint = run.folder / f"training-{run.shape.kind}-part-{len(before) + 1}.pt"
    model = start.build(run.device)
    objective = Denoising(Batches.make(model, data, recipe, run.folder), run.dtype)
    state = TrainingState.start(model.model.diffusion_model, recipe)
    return KeptTraining(
        Trainer(objective, recipe), state, run.shape, start.scales, checkpoint, before=before
    )
