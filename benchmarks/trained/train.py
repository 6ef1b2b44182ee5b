"""From nothing to a file of weights: draws the examples, trains, and keeps what it has."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ..waiting import waiting
from . import codec, text, weights
from .examples import SOURCES, Examples
from .network import Shape, build_network
from .places import find_training_log
from .recipe import Recipe
from .state import TrainingState
from .training import Trainer
from .unet import UNetShape

EXAMPLES_SEED = 0
SCALED_BY = 1000
"""How many of the examples the latent's scales are computed from."""


@dataclass(frozen=True)
class TrainingRun:
    """folder: for the examples and the checkpoint. device: where to train. examples: how many,
    by default as many as the published weights saw.
    """

    recipe: Recipe
    folder: Path
    device: torch.device
    shape: Shape = field(default_factory=UNetShape)
    examples: int | None = None

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
        data = source.load(run.folder, run.examples or source.count, EXAMPLES_SEED)
        trainer, state = _prepare(run, data)
    scales = trainer.model.model.latent_format.scales.flatten()
    if run.checkpoint.exists():
        state.restore(run.checkpoint)
        console.print(f"Going on from step {len(state.losses)}")

    def keep(state: TrainingState) -> None:
        state.save(run.checkpoint)
        facts = {"steps": len(state.losses), "seconds": round(state.seconds)}
        weights.save(place, state.average_weights(), scales, run.shape, **facts)
        state.write_log(find_training_log(place), run.recipe)

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("", total=run.recipe.steps, completed=len(state.losses))

        def watch(state: TrainingState) -> None:
            step = len(state.losses)
            recent = state.losses[-20:]
            stage = run.recipe.find_stage(step - 1)
            grid = f"{stage.frames} x {stage.tokens} x {stage.tokens}"
            text_ = f"{grid} tokens, loss {sum(recent) / len(recent):.3f}"
            progress.update(task, completed=step, description=text_)

        trainer.run(state, keep, until=until, watch=watch)
    return state


def _prepare(run: TrainingRun, data: Examples) -> tuple[Trainer, TrainingState]:
    rows = torch.arange(min(SCALED_BY, len(data.captions)))
    scales = codec.measure_scales(data.largest(rows, torch.Generator().manual_seed(0)))
    model = build_network(run.shape, scales, seed=run.recipe.seed, device=run.device)
    network = model.model.diffusion_model
    network.requires_grad_(True)
    captions = sorted(set(data.captions))
    prompts = _prompts(run.folder, captions)
    row_of = {caption: row for row, caption in enumerate(captions)}
    caption_rows = torch.tensor([row_of[caption] for caption in data.captions])
    trainer = Trainer(model, data, prompts.float(), caption_rows, run.recipe)
    return trainer, TrainingState.start(network, run.recipe)


def _prompts(folder: Path, captions: list[str]) -> torch.Tensor:
    """Every caption's vectors and those of no words, (captions + 1, 77, C), kept in the folder."""
    name = hashlib.sha256("\n".join(captions).encode()).hexdigest()[:12]
    place = folder / f"prompts-{name}.pt"
    if place.exists():
        kept: torch.Tensor = torch.load(place)
        return kept
    clip = text.build_encoder()
    prompts = torch.stack([text.encode(clip, caption) for caption in [*captions, ""]]).half()
    torch.save(prompts, place)
    return prompts
