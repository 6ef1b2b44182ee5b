"""What ``train run`` does: models one after the other, or at the same time on a GPU."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from .. import loading
from .options import CHAINS

if TYPE_CHECKING:
    import torch

    from .pool import Source
    from .recipes import Recipe

RESERVE = 40.0
"""Seconds for what is not training: imports, decoding the emoji, samples."""
STEPS_TO_COMPILE = 20
"""So many steps have some of every stage."""


def train(options: argparse.Namespace) -> int:
    """1 where a model failed; the others are trained all the same."""
    if options.device == "cuda":
        return train_side_by_side(options)
    loading.load(options.device)
    return _train_chain(options, options.models)


def train_side_by_side(options: argparse.Namespace) -> int:
    """Every chain of models in a process of its own, so that one computes while another compiles.

    What the later stages need is compiled ahead by further processes, which leave it in the cache
    of torch.compile. All chains have the same minutes.
    """
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "5")
    named = [[model for model in chain if model in options.models] for chain in CHAINS]
    chains = [chain for chain in named if chain]
    context = get_context("spawn")
    with tempfile.TemporaryDirectory() as scratch:
        training = [context.Process(target=_start_chain, args=(options, one)) for one in chains]
        ahead = [
            context.Process(target=_compile_ahead, args=(options, one, Path(scratch)))
            for one in chains
        ]
        for process in (*training, *ahead):
            process.start()
        for process in (*training, *ahead):
            process.join()
    return int(any(process.exitcode for process in training))


def _start_chain(options: argparse.Namespace, models: Sequence[str]) -> None:
    loading.load(options.device)
    raise SystemExit(_train_chain(options, models))


def _compile_ahead(options: argparse.Namespace, models: Sequence[str], scratch: Path) -> None:
    loading.load(options.device)
    for name in models:
        task = Task(options, name, scratch / f"{name}.safetensors")
        if task.is_compiled:
            task.train(inf, STEPS_TO_COMPILE)


def _train_chain(options: argparse.Namespace, models: Sequence[str]) -> int:
    import torch

    torch.set_float32_matmul_precision("high")
    tasks = [Task(options, name, options.out / f"{name}.safetensors") for name in models]
    shares = sum(task.recipe.share for task in tasks)
    code = 0
    for task in tasks:
        seconds = (60 * options.minutes - RESERVE) * task.recipe.share / shares
        try:
            task.train(seconds, 4 if options.quick else options.steps or inf)
            task.show()
        except (RuntimeError, FileNotFoundError) as error:
            print(f"{task.name} failed. {error}", flush=True)
            code = 1
    return code


@dataclass(frozen=True)
class Task:
    """One model to train. place: of its weights."""

    options: argparse.Namespace
    name: str
    place: Path

    @property
    def recipe(self) -> Recipe:
        from .recipes import ON_CPU, ON_GPU

        options = self.options
        recipe = (ON_CPU if options.device == "cpu" else ON_GPU)[self.name]
        return recipe.shrink() if options.quick else recipe.fit(options.tokens, options.batch)

    @property
    def device(self) -> torch.device:
        import torch

        return torch.device(self.options.device)

    @property
    def is_compiled(self) -> bool:
        on_gpu = self.device.type == "cuda"
        return on_gpu and self.recipe.compile and not self.options.no_compile

    @cached_property
    def source(self) -> Source:
        """Decoded once, for training and for samples."""
        from .pool import Source

        subjects = 4 if self.options.quick else self.options.subjects or self.recipe.subjects
        recipe, options = self.recipe, self.options
        return Source.load(options.data, recipe.frames, self.device, subjects, recipe.variety)

    def train(self, seconds: float, steps: float) -> None:
        """At most so long, all runs together."""
        from .trainer import Limit, Training

        training = Training(
            self.recipe, self.source, self.place, self.device, Limit(seconds, steps)
        )
        training.compiled = self.is_compiled
        teacher = self.recipe.teacher
        training.run(self.place.with_stem(teacher) if teacher else None)
        size = self.place.stat().st_size / 1e6
        text = f"{training.steps} steps, {training.seconds:.0f} s, {size:.1f} MB"
        print(f"{self.name}: {text}", flush=True)

    def show(self) -> None:
        """A sheet of samples beside the weights."""
        from ..sheet import draw_sheet
        from ..trained import weights
        from .samples import sample

        guidance, steps = (1.0, 4) if self.recipe.teacher else (self.options.guidance, 20)
        count = 2 if self.options.quick else 4 if self.recipe.moving else 16
        model, tokens = weights.load(self.place, self.device), self.recipe.stages[-1].tokens
        pixels, captions = sample(model, self.source, tokens, count, steps, guidance)
        draw_sheet(pixels, captions, self.place.with_suffix(".jpg"))
