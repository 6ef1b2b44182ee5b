"""A training that shows how far it is, keeps what it has and goes on where it was stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor

from . import log, weights
from .log import PartLog
from .network import Shape
from .places import find_training_log
from .state import TrainingState
from .training import Trainer


@dataclass(frozen=True)
class KeptTraining:
    """scales: of the latent's channels. pack: how the file has the weights. facts: what it is to
    say of itself beside the steps and the seconds. before: the parts that led to the first weights.
    """

    trainer: Trainer
    state: TrainingState
    shape: Shape
    scales: Tensor
    checkpoint: Path
    pack: Callable[[dict[str, Tensor]], dict[str, Tensor]] = weights.halve
    facts: Mapping[str, Any] = field(default_factory=dict)
    before: tuple[PartLog, ...] = ()

    def complete(self, place: Path, console: Console, until: int | None = None) -> TrainingState:
        """To the end, from where the checkpoint is if there is one.

        place: of the weights. until: a step to stop at before the end.
        """
        state, recipe = self.state, self.trainer.recipe
        if self.checkpoint.exists():
            state.restore(self.checkpoint)
            console.print(f"Going on from step {len(state.losses)}")

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
            task = progress.add_task("", total=recipe.steps, completed=len(state.losses))

            def watch(state: TrainingState) -> None:
                step = len(state.losses)
                recent = state.losses[-20:]
                stage = recipe.find_stage(step - 1)
                grid = f"{stage.frames} x {stage.tokens} x {stage.tokens}"
                text = f"{grid} tokens, loss {sum(recent) / len(recent):.4f}"
                progress.update(task, completed=step, description=text)

            self.trainer.run(state, lambda state: self._keep(place), until=until, watch=watch)
        return state

    def _keep(self, place: Path) -> None:
        self.state.save(self.checkpoint)
        parts = (*self.before, self.state.describe(self.trainer.recipe))
        facts = {
            "steps": sum(len(part.losses) for part in parts),
            "seconds": sum(part.seconds for part in parts),
        }
        packed = self.pack(self.state.average_weights())
        weights.save(place, packed, self.scales, self.shape, **facts, **self.facts)
        log.write(find_training_log(place), parts)
