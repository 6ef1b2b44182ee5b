"""Where a training stands: what a checkpoint holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from .log import PartLog
from .recipe import Recipe


@dataclass
class TrainingState:
    """average: of the network's weights. losses: one a step. seconds: spent, over all runs."""

    network: nn.Module
    average: AveragedModel
    optimizer: Optimizer
    schedule: LRScheduler
    losses: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @staticmethod
    def start(network: nn.Module, recipe: Recipe) -> TrainingState:
        """All weights of the network are trained, though ComfyUI builds it without gradients."""
        network.requires_grad_(True)
        average = AveragedModel(network, multi_avg_fn=_average_by(recipe))
        average.update_parameters(network)  # the first weights count as one of the averaged
        matrices = [weight for weight in network.parameters() if weight.ndim > 1]
        others = [weight for weight in network.parameters() if weight.ndim <= 1]
        groups: list[dict[str, Any]] = [
            {"params": matrices},
            {"params": others, "weight_decay": 0.0},
        ]
        optimizer = AdamW(groups, lr=recipe.rate, betas=(0.9, 0.99), weight_decay=0.01)
        return TrainingState(network, average, optimizer, recipe.schedule_rate(optimizer))

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    def step(self) -> None:
        """Change the weights by their gradients, and the average by the weights."""
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.schedule.step()
        self.average.update_parameters(self.network)

    def average_weights(self) -> dict[str, Tensor]:
        """By the network's names."""
        return dict(self.average.module.named_parameters())

    def save(self, place: Path) -> None:
        """Written beside and renamed, so that a kill never leaves half a checkpoint."""
        kept = {name: part.state_dict() for name, part in self._parts().items()}
        unfinished = place.with_suffix(".part")
        torch.save({**kept, "losses": self.losses, "seconds": self.seconds}, unfinished)
        unfinished.replace(place)

    def restore(self, place: Path) -> None:
        kept: dict[str, Any] = torch.load(place, map_location=self.device)
        for name, part in self._parts().items():
            part.load_state_dict(kept[name])
        self.losses, self.seconds = kept["losses"], kept["seconds"]

    def _parts(self) -> dict[str, Any]:
        return {
            "network": self.network,
            "average": self.average,
            "optimizer": self.optimizer,
            "schedule": self.schedule,
        }

    def describe(self, recipe: Recipe) -> PartLog:
        """What is kept of a training for good."""
        return PartLog(recipe, round(self.seconds), [round(loss, 5) for loss in self.losses])


def _average_by(recipe: Recipe) -> Any:
    def average(averaged: Any, weights: Any, count: Tensor) -> None:
        get_ema_multi_avg_fn(recipe.find_decay(int(count)))(averaged, weights, count)

    return average
