"""From a trained model to one for few steps: starts from its weights and learns its runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console

from ..waiting import waiting
from . import eight_bits, weights
from .batches import Batches
from .distillation import STEPS, STEPS_OF_TEACHER, Distillation
from .examples import SEED, SOURCES
from .keeping import KeptTraining
from .places import TEACHERS
from .recipe import Recipe
from .state import TrainingState
from .training import Trainer


@dataclass(frozen=True)
class DistillationRun:
    """model: the student's name. teacher: its weights. folder: for the examples and the checkpoint.
    device: where to train. examples: how many, by default as many as the published weights saw.
    dtype: what both networks compute in.
    """

    recipe: Recipe
    folder: Path
    device: torch.device
    model: str
    teacher: Path
    examples: int | None = None
    dtype: torch.dtype = torch.bfloat16


def distil(
    run: DistillationRun, place: Path, console: Console, until: int | None = None
) -> TrainingState:
    """Train to the end, from where the folder's checkpoint of this teacher is if it has one.

    place: of the student's weights. until: a step to stop at before the end.
    Raises RuntimeError where the teacher is of another kind than the student.
    """
    stored = weights.read(run.teacher)
    expected = TEACHERS[run.model]
    if stored.shape.kind != expected:
        kind = stored.shape.kind
        raise RuntimeError(f"{run.teacher} is of the kind {kind!r}, expected {expected!r}")
    with waiting(console, "Drawing the examples and encoding their captions"):
        training = _prepare(run, stored)
    return training.complete(place, console, until)


def _prepare(run: DistillationRun, stored: weights.Stored) -> KeptTraining:
    source = SOURCES[stored.shape.kind]
    data = source.load(run.folder, run.examples or source.count, SEED)
    teacher, student = (stored.build(run.device) for _ in range(2))
    batches = Batches.make(student, data, run.recipe, run.folder)
    objective = Distillation(batches, teacher.model.diffusion_model, run.dtype)
    mark = weights.fingerprint(teacher)
    return KeptTraining(
        Trainer(objective, run.recipe),
        TrainingState.start(student.model.diffusion_model, run.recipe),
        stored.shape,
        stored.scales,
        # Another teacher, another training.
        run.folder / f"distilling-{run.model}-{mark}.pt",
        eight_bits.pack,
        {"teacher": mark, "made_for": STEPS, "teacher_steps": STEPS * STEPS_OF_TEACHER},
    )
