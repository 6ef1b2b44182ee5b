"""Trains one model for so many seconds or steps, keeps what it has, goes on from there."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import cos, inf, pi
from pathlib import Path
from typing import Any

import comfy.model_management
import torch
from torch import Generator, Tensor, nn
from torch.optim import Optimizer

from ..trained import weights
from ..trained.network import build_network
from . import start
from .objectives import Batch, denoise, distil
from .optimizers import make_optimizers
from .pool import Pool, Source
from .recipes import Recipe, Stage

KEEP_EVERY = 60.0
"""Seconds."""
READ_EVERY = 10
"""Steps. To read a loss waits for the GPU."""
WARM_UP = 50
LAST_RATE = 0.03
"""Of the highest rate."""


@dataclass(frozen=True)
class Limit:
    """Where a training ends: at the first of both, counted over all its runs."""

    seconds: float = inf
    steps: float = inf


@dataclass
class Training:
    """place: of the weights, which are also what a later run goes on from."""

    recipe: Recipe
    source: Source
    place: Path
    device: torch.device
    limit: Limit
    compiled: bool = False
    tell: Callable[[str], None] = print
    losses: list[tuple[int, float]] = field(default_factory=list)
    steps: int = 0
    seconds: float = 0.0

    def run(self, teacher: Path | None = None) -> None:
        """To the end. teacher: the weights that it is distilled from, and starts from."""
        # ComfyUI takes kernels that have no backward pass unless told.
        comfy.model_management.in_training = True
        try:
            self._run(teacher)
        finally:
            comfy.model_management.in_training = False

    def _run(self, teacher: Path | None) -> None:
        # Of a processor only the time that it spends here, as other work may run beside.
        clock = time.monotonic if self.device.type == "cuda" else time.process_time
        began = kept = clock()
        before = self._prepare(teacher)
        network, first = self.model.model.diffusion_model, self.steps
        copy_inputs_of_norms(network)
        optimizers = make_optimizers(network, self.recipe.rate, self.device)
        # Few sizes of a batch follow each other: code for any size would be slower.
        answerer = torch.compile(network, dynamic=False) if self.compiled else network
        generator = Generator(self.device).manual_seed(self.steps)
        pool: Pool | None = None
        network.train()
        while (progress := self._measure_progress()) < 1:
            stage = self.recipe.find_stage(progress)
            if pool is None or pool.stage != stage:
                pool = None  # frees the memory first
                pool = Pool(self.source, stage, generator)
            falling = LAST_RATE + (1 - LAST_RATE) * (1 + cos(pi * progress)) / 2
            rising = min(1, (self.steps - first + 1) / WARM_UP)
            for group in (group for one in optimizers for group in one.param_groups):
                group["lr"] = self.recipe.rate * rising * falling
            try:
                loss = self._step(answerer, pool, optimizers)
            except Exception as error:
                if not self.compiled:
                    raise
                self.tell(f"{self.place.stem}: going on without torch.compile: {error}")
                self.compiled, answerer = False, network
                continue
            self._average(network)
            self.steps += 1
            if self.steps % READ_EVERY == 0:
                self._note(loss, stage)
            now = clock()
            self.seconds = before + now - began
            if now - kept > KEEP_EVERY:
                self._keep()
                kept = now
        if self.steps > first:
            self._keep()

    def _measure_progress(self) -> float:
        return max(self.seconds / self.limit.seconds, self.steps / self.limit.steps)

    def _prepare(self, teacher: Path | None) -> float:
        """Build the model, where it is to go on from. Returns the seconds that it has had."""
        known = self.place if self.place.exists() else teacher
        if known is not None:
            stored = weights.read(known)
            self.scales, self.model = stored.scales, stored.build(self.device)
        else:
            generator = Generator(self.device).manual_seed(0)
            tokens = self.recipe.stages[0].tokens
            found, _ = self.source.make(64 // self.recipe.frames, tokens, generator)
            self.scales = 1 / found.std(dim=(0, *range(2, found.ndim))).cpu()
            self.model = build_network(self.recipe.shape, self.scales, device=self.device)
            start.fill(self.model.model.diffusion_model)
        if self.place.exists():
            self.steps, self.seconds = stored.facts["steps"], stored.facts["seconds"]
            self.losses = [(step, loss) for step, loss in stored.facts["losses"]]
            self.tell(f"{self.place.stem}: going on from step {self.steps}")
        network = self.model.model.diffusion_model.requires_grad_(True)
        self.averaged = {name: one.detach().clone() for name, one in network.named_parameters()}
        self.taught: nn.Module | None = None
        if teacher is not None:
            self.taught = weights.load(teacher, self.device).model.diffusion_model
        return self.seconds

    def _step(self, network: Any, pool: Pool, optimizers: list[Optimizer]) -> Tensor:
        latents, context = pool.draw()
        latent = self.model.model.process_latent_in(latents)
        count, device, generator = len(latent), latent.device, pool.generator
        noise = torch.randn(latent.shape, generator=generator, device=device)
        spread = torch.arange(count, device=device)
        spread = (spread + torch.rand(count, generator=generator, device=device)) / count
        batch = Batch(latent, noise, context, spread)
        sampling = self.model.get_model_object("model_sampling").to(device)
        placed = partial(network, transformer_options=self._place_tokens(pool.stage.tokens))
        if self.taught is not None:
            taught = partial(self.taught, **placed.keywords)
            loss = distil(placed, sampling, batch, taught, pool.nothing, self.recipe.guidance)
        else:
            loss = denoise(placed, sampling, batch, self.recipe.shift)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.model.diffusion_model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    def _place_tokens(self, tokens: int) -> dict[str, Any]:
        """Few tokens lie as far apart as every n-th of the last stage's, so that a stage goes on
        with the layouts that the one before has learned. A UNet knows no places.
        """
        spread = (self.recipe.stages[-1].tokens - 1) / (tokens - 1)
        return {"rope_options": {"scale_y": spread, "scale_x": spread}}

    def _average(self, network: nn.Module) -> None:
        """Over about the last twentieth of the steps."""
        weight = 1 / (10 + self.steps / 20)
        averaged = list(self.averaged.values())
        torch._foreach_lerp_(averaged, [one.detach() for one in network.parameters()], weight)

    def _note(self, loss: Tensor, stage: Stage) -> None:
        if not loss.isfinite():
            raise RuntimeError(f"{self.place.stem} has a loss of {loss} at step {self.steps}")
        self.losses.append((self.steps, round(float(loss), 5)))
        if self.steps % (10 * READ_EVERY) == 0:
            mean = sum(value for _, value in self.losses[-10:]) / len(self.losses[-10:])
            text = f"{stage.tokens} x {stage.tokens} tokens, loss {mean:.4f}"
            self.tell(f"{self.place.stem}: step {self.steps}, {self.seconds:.0f} s, {text}")

    def _keep(self) -> None:
        facts = {
            "subjects": self.source.library.names,
            "steps": self.steps,
            "seconds": round(self.seconds),
            "losses": self.losses,
        }
        weights.save(self.place, self.averaged, self.scales, self.recipe.shape, **facts)


def copy_inputs_of_norms(network: nn.Module) -> None:
    """Let blocks of ComfyUI's transformers add to their input in place after a norm has read it,
    which the norm's backward pass reads again: it reads a copy.
    """
    for module in network.modules():
        if isinstance(module, nn.LayerNorm):
            module.register_forward_pre_hook(lambda _, given: tuple(one.clone() for one in given))
