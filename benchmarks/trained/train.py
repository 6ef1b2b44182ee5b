"""From nothing to a file of weights: draws the pictures, trains, and keeps what it has."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from . import codec, dataset, text, weights
from .network import Shape, build_network
from .places import find_training_log
from .recipe import Recipe
from .state import TrainingState
from .training import Trainer
from .unet import UNetShape

PICTURES = 6000
PICTURES_SEED = 0
SCALED_BY = 1000
"""How many of the pictures the latent's scales are computed from."""


@dataclass(frozen=True)
class TrainingRun:
    """folder: for the pictures and the checkpoint. device: where to train."""

    recipe: Recipe
    folder: Path
    device: torch.device
    shape: Shape = field(default_factory=UNetShape)
    pictures: int = PICTURES

    @property
    def checkpoint(self) -> Path:
        return self.folder / f"training-{self.shape.kind}.pt"


def train(
    run: TrainingRun, place: Path, console: Console, until: int | None = None
) -> TrainingState:
    """Train to the end, from where the folder's checkpoint is if it has one.

    place: of the weights. until: a step to stop at before the end.
    """
    data = dataset.load(run.folder, run.pictures, PICTURES_SEED)
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
            tokens = run.recipe.find_stage(step - 1).tokens
            text_ = f"{tokens} x {tokens} tokens, loss {sum(recent) / len(recent):.3f}"
            progress.update(task, completed=step, description=text_)

        trainer.run(state, keep, until=until, watch=watch)
    return state


def _prepare(run: TrainingRun, data: dataset.Dataset) -> tuple[Trainer, TrainingState]:
    rows = torch.arange(min(SCALED_BY, run.pictures))
    crops = data.crops(rows, dataset.CROP, torch.Generator().manual_seed(0))
    scales = codec.measure_scales(crops)
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
    place = folder / f"prompts-{len(captions)}.pt"
    if place.exists():
        kept: torch.Tensor = torch.load(place)
        return kept
    clip = text.build_encoder()
    prompts = torch.stack([text.encode(clip, caption) for caption in [*captions, ""]]).half()
    torch.save(prompts, place)
    return prompts
