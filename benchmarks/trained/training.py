"""Trains a model. Stops and goes on at any step.

What a step does depends on its number and the weights before it alone, so a run that was stopped
and taken up again ends with the weights of one that was not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import comfy.model_management
import torch
import torch.nn.functional as F
from comfy.model_patcher import ModelPatcher
from torch import Tensor, nn
from torch.autograd.graph import allow_mutation_on_saved_tensors

from . import codec
from .examples import Examples
from .recipe import Recipe
from .state import TrainingState
from .target import compute_target


@dataclass(frozen=True)
class Trainer:
    """model: its weights are trained in place. prompts: (captions + 1, 77, C), the last of no
    words. caption_rows: which of ``prompts`` each example of ``data`` has.
    """

    model: ModelPatcher
    data: Examples
    prompts: Tensor
    caption_rows: Tensor
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
        # Blocks of ComfyUI's transformers write into what the backward pass reads.
        with allow_mutation_on_saved_tensors():
            loss = self._compute_loss(state.network, step, state.device)
            loss.backward()
        state.step()
        return float(loss.detach())

    def _compute_loss(self, network: nn.Module, step: int, device: torch.device) -> Tensor:
        """Mean squared error of the predicted velocity on the batch of this step."""
        stage = self.recipe.find_stage(step)
        generator = torch.Generator().manual_seed(self.recipe.seed * 1_000_000 + step)
        rows = torch.randint(len(self.data.captions), (stage.batch,), generator=generator)
        captions = self.caption_rows[rows]
        unprompted = torch.rand(stage.batch, generator=generator) < self.recipe.without_caption
        captions = torch.where(unprompted, len(self.prompts) - 1, captions)
        bands = codec.split_bands(self.data.batch(rows, stage, generator))  # (B, 12, ..., H, W)
        noise = torch.randn(bands.shape, generator=generator)
        # One draw in each of `batch` equal spans: the same distribution with less variance.
        spread = torch.arange(stage.batch) + torch.rand(stage.batch, generator=generator)
        bands, noise = bands.to(device), noise.to(device)
        sampling = self.model.get_model_object("model_sampling")
        last = len(sampling.sigmas)
        levels = (spread * last / stage.batch).long().clamp(max=last - 1).to(device)
        latent = self.model.model.process_latent_in(bands)
        sigmas = sampling.sigmas.to(latent)[levels]  # (B,)
        noised = sampling.noise_scaling(sigmas, noise, latent)
        state = sampling.calculate_input(sigmas, noised)
        context = self.prompts[captions].to(device)
        with torch.autocast(latent.device.type, torch.bfloat16):
            output = network(state, sampling.timestep(sigmas).float(), context=context)
        return F.mse_loss(output.float(), compute_target(sampling, sigmas, noised, latent))


@contextmanager
def _in_training() -> Iterator[None]:
    """ComfyUI takes kernels that have no backward pass unless told."""
    before = comfy.model_management.in_training
    comfy.model_management.in_training = True
    try:
        yield
    finally:
        comfy.model_management.in_training = before
