"""Trains a model: few tokens first, more later. Stops and goes on at any step.

What a step does depends on its number and the weights before it alone, so a run that was stopped
and taken up again ends with the weights of one that was not.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import comfy.model_management
import torch
import torch.nn.functional as F
from comfy.model_patcher import ModelPatcher
from torch import Tensor, nn
from torch.autograd.graph import allow_mutation_on_saved_tensors

from . import codec
from .dataset import Dataset


@dataclass(frozen=True)
class Stage:
    """tokens: a side. batch: pictures a step."""

    tokens: int
    batch: int
    steps: int


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the weights, together with the data.

    warm_up: steps. ema: decay of the averaged weights, which are the ones that are kept.
    without_caption: share of the pictures that the model is to predict unprompted.
    """

    stages: tuple[Stage, ...]
    rate: float = 1e-3
    last_rate: float = 3e-5
    warm_up: int = 100
    ema: float = 0.995
    without_caption: float = 0.1
    seed: int = 0

    @property
    def steps(self) -> int:
        return sum(stage.steps for stage in self.stages)

    def stage_of(self, step: int) -> Stage:
        for stage in self.stages:
            if step < stage.steps:
                return stage
            step -= stage.steps
        raise IndexError(f"the recipe has {self.steps} steps")

    def rate_of(self, step: int) -> float:
        """A linear warm-up, then half a cosine."""
        if step < self.warm_up:
            return self.rate * (step + 1) / self.warm_up
        share = (step - self.warm_up) / max(self.steps - self.warm_up, 1)
        return self.last_rate + (self.rate - self.last_rate) * (1 + math.cos(math.pi * share)) / 2


ON_CPU = {
    "unet": Recipe((Stage(16, 32, 700), Stage(32, 8, 1300), Stage(64, 2, 400)), ema=0.997),
    "flux": Recipe((Stage(16, 32, 750), Stage(32, 8, 600)), ema=0.997),
}
"""By kind of network; for one or two cores and an hour or so."""
ON_GPU = Recipe((Stage(32, 256, 6000), Stage(64, 128, 4000)), ema=0.999)


@dataclass
class State:
    """What a checkpoint holds. losses: one a step. seconds: spent so far, over all runs."""

    network: nn.Module
    average: dict[str, Tensor]
    optimizer: torch.optim.Optimizer
    losses: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @staticmethod
    def new(network: nn.Module) -> State:
        average = {name: weight.detach().clone() for name, weight in network.named_parameters()}
        matrices = [weight for weight in network.parameters() if weight.ndim > 1]
        others = [weight for weight in network.parameters() if weight.ndim <= 1]
        groups: list[dict[str, Any]] = [
            {"params": matrices},
            {"params": others, "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.99), weight_decay=0.01)
        return State(network, average, optimizer)

    def save(self, place: Path) -> None:
        """Written beside and renamed, so that a kill never leaves half a checkpoint."""
        kept = {
            "network": self.network.state_dict(),
            "average": self.average,
            "optimizer": self.optimizer.state_dict(),
            "losses": self.losses,
            "seconds": self.seconds,
        }
        unfinished = place.with_suffix(".part")
        torch.save(kept, unfinished)
        unfinished.replace(place)

    def restore(self, place: Path) -> None:
        kept: dict[str, Any] = torch.load(place, map_location=_device(self.network))
        self.network.load_state_dict(kept["network"])
        self.average = kept["average"]
        self.optimizer.load_state_dict(kept["optimizer"])
        self.losses, self.seconds = kept["losses"], kept["seconds"]


@dataclass(frozen=True)
class Trainer:
    """model: its weights are trained in place. prompts: (captions + 1, 77, C), the last of no
    words. caption_rows: which of ``prompts`` each picture of ``data`` has.
    """

    model: ModelPatcher
    data: Dataset
    prompts: Tensor
    caption_rows: Tensor
    recipe: Recipe

    def run(
        self,
        state: State,
        keep: Callable[[State], None],
        *,
        keep_every: float = 180.0,
        until: int | None = None,
        watch: Callable[[State], None] = lambda state: None,
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

    def _step(self, state: State, step: int) -> float:
        # Blocks of ComfyUI's transformers write into what the backward pass reads.
        with allow_mutation_on_saved_tensors():
            loss = self.loss(state.network, step)
            loss.backward()
        nn.utils.clip_grad_norm_(state.network.parameters(), 1.0)
        for group in state.optimizer.param_groups:
            group["lr"] = self.recipe.rate_of(step)
        state.optimizer.step()
        state.optimizer.zero_grad()
        # Averaging starts short, so that the first weights are soon forgotten.
        decay = min(self.recipe.ema, (1 + step) / (10 + step))
        with torch.no_grad():
            for name, weight in state.network.named_parameters():
                state.average[name].lerp_(weight, 1 - decay)
        return float(loss.detach())

    def loss(self, network: nn.Module, step: int) -> Tensor:
        """Mean squared error of the predicted velocity on the batch of this step."""
        stage = self.recipe.stage_of(step)
        generator = torch.Generator().manual_seed(self.recipe.seed * 1_000_000 + step)
        rows = torch.randint(len(self.data.captions), (stage.batch,), generator=generator)
        captions = self.caption_rows[rows]
        unprompted = torch.rand(stage.batch, generator=generator) < self.recipe.without_caption
        captions = torch.where(unprompted, len(self.prompts) - 1, captions)
        side = stage.tokens * codec.PIXELS_PER_TOKEN
        pictures = self.data.crops(rows, side, generator)
        noise = torch.randn(
            (stage.batch, codec.CHANNELS, stage.tokens, stage.tokens), generator=generator
        )
        # One draw in each of `batch` equal spans: the same distribution with less variance.
        spread = torch.arange(stage.batch) + torch.rand(stage.batch, generator=generator)
        device = _device(network)
        pictures, noise = pictures.to(device), noise.to(device)
        sampling = self.model.get_model_object("model_sampling")
        last = len(sampling.sigmas)
        levels = (spread * last / stage.batch).long().clamp(max=last - 1).to(device)
        latent = self.model.model.process_latent_in(codec.bands(pictures))
        sigmas = sampling.sigmas.to(latent)[levels]  # (B,)
        noised = sampling.noise_scaling(sigmas, noise, latent)
        state = sampling.calculate_input(sigmas, noised)
        context = self.prompts[captions].to(device)
        with torch.autocast(latent.device.type, torch.bfloat16):
            output = network(state, sampling.timestep(sigmas).float(), context=context)
        return F.mse_loss(output.float(), best_output(sampling, sigmas, noised, latent))


def best_output(sampling: Any, sigmas: Tensor, noised: Tensor, latent: Tensor) -> Tensor:
    """What a network has to answer for ComfyUI to read ``latent`` out of it.

    sampling: of a model that predicts a velocity, by whichever convention. sigmas: (B,). noised,
    latent: (B, C, H, W).
    """
    silent = sampling.calculate_denoised(sigmas, torch.zeros_like(noised), noised)
    return (latent - silent) / _each(picture_per_output(sampling, sigmas))


def picture_per_output(sampling: Any, sigmas: Tensor) -> Tensor:
    """By how much the picture that ComfyUI reads changes with the network's answer: (B,)."""
    one = torch.ones_like(sigmas)
    changed: Tensor = sampling.calculate_denoised(sigmas, one, torch.zeros_like(one))
    return changed


@contextmanager
def _in_training() -> Iterator[None]:
    """ComfyUI takes kernels that have no backward pass unless told."""
    before = comfy.model_management.in_training
    comfy.model_management.in_training = True
    try:
        yield
    finally:
        comfy.model_management.in_training = before


def _each(values: Tensor) -> Tensor:
    """(B,) -> (B, 1, 1, 1)."""
    return values[:, None, None, None]


def _device(network: nn.Module) -> torch.device:
    return next(network.parameters()).device


def write_log(place: Path, state: State, recipe: Recipe) -> None:
    """The loss of every step and the seconds, as JSON."""
    losses = [round(loss, 4) for loss in state.losses]
    log = {"recipe": asdict(recipe), "seconds": round(state.seconds), "losses": losses}
    place.write_text(json.dumps(log) + "\n")
