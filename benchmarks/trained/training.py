"""Trains a model. Stops and goes on at any step.

What a step does depends on its number and the weights before it alone, so a run that was stopped
and taken up again ends with the weights of one that was not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import comfy.model_management
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from .recipe import Recipe
from .state import TrainingState


class Objective(Protocol):
    """What a network is to learn."""

    def compute_loss(self, network: nn.Module, step: int, device: torch.device) -> Tensor:
        """Of the network on this step's batch, computed on ``device``."""


@dataclass(frozen=True)
class Trainer:
    """Trains a network's weights in place."""

    objective: Objective
    recipe: Recipe

    def run(
        self,
        state: TrainingState,
        keep: Callable[[TrainingState], None],
        *,
        keep_every: float = 180.0,
        until: int | None = None,
        watch: Callable[[TrainingState], None] = lambda state: None,
    ) -> None:
        """Train from where ``state`` is to step ``until``, by default the recipe's last.

        keep: called every ``keep_every`` seconds and at the end. watch: called after every step.
        """
        kept_at = time.monotonic()
        state.network.train()
        for step in range(len(state.losses), self.recipe.steps if until is None else until):
            start = time.monotonic()
            with _in_training():
                state.losses.append(self._step(state, step))
            state.seconds += time.monotonic() - start
            watch(state)
            if time.monotonic() - kept_at > keep_every:
                keep(state)
                kept_at = time.monotonic()
        keep(state)

    def _step(self, state: TrainingState, step: int) -> float:
        with copy_saved_tensors():
            loss = self.objective.compute_loss(state.network, step, state.device)
            loss.backward()
        state.step()
        return float(loss.detach())


def copy_saved_tensors() -> saved_tensors_hooks:
    """Let a network write into tensors that its backward pass reads: it reads copies.

    Blocks of ComfyUI's transformers do so. ``allow_mutation_on_saved_tensors`` of PyTorch 2.13 is
    for the same, but it knows a tensor by its address: where a new tensor lies at the address of
    one that was written to and freed, the backward pass reads the old one.
    """
    return saved_tensors_hooks(_copy, lambda saved: saved)


def _copy(saved: Tensor) -> Tensor:
    # Nothing writes into weights before the step is over.
    return saved if isinstance(saved, nn.Parameter) else saved.detach().clone()


@contextmanager
def _in_training() -> Iterator[None]:
    """ComfyUI takes kernels that have no backward pass unless told."""
    before = comfy.model_management.in_training
    comfy.model_management.in_training = True
    try:
        yield
    finally:
        comfy.model_management.in_training = before
