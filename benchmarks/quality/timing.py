"""How much faster each variant is, in turn with plain, at the tokens of a usual picture."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from rich.progress import Progress
from torch import Tensor

from ..speed.results import Results
from ..speed.summary import compare
from . import sampling
from .pairs import Pairs
from .patches import Variants
from .regimes import DEFAULT
from .report import Report
from .sampling import Batch, Trajectory

TOKENS = {"unet": 96, "flux": 64}
"""A side: as many as SD 1.5 has for 768 x 768 pixels, and Flux for 1024 x 1024."""
TIMED_KINDS = ("ours", "peer")
PLAIN_EVERY = 3
TIMED = (2, 6, 10, 14, 18)
"""Of 20 steps: spread evenly, so that a variant that rests in some steps is timed in its share."""


def measure(
    model: ModelPatcher,
    pairs: Pairs,
    variants: Variants,
    rounds: int,
    tokens: int,
    report: Report,
    place: Path,
    progress: Progress,
) -> None:
    """Round by round; plain again before every few variants, so that both see the same machine."""
    batch = Batch(pairs.prompts[:1], pairs.nothing, (0,), sampling.square(tokens))
    chosen = [variant for variant in variants if variant.pictures and variant.kind in TIMED_KINDS]
    patched = [variant.patch(model) for variant in chosen]
    task = progress.add_task("speed", total=rounds * len(chosen))
    for number in range(rounds):
        plain = 0.0
        for position, (variant, clone) in enumerate(zip(chosen, patched, strict=True)):
            measured = report.find_or_add(variant.name, variant.kind)
            progress.update(task, description=f"speed, round {number + 1}: {variant.name}")
            if len(measured.seconds) <= number:
                if not plain or position % PLAIN_EVERY == 0:
                    plain = seconds(model, batch)
                measured.plain_seconds.append(plain)
                measured.seconds.append(seconds(clone, batch))
                report.write(place)
            progress.advance(task)


def seconds(model: ModelPatcher, batch: Batch) -> float:
    """Mean of a few model calls, all that a node wraps around them included."""
    calls: list[float] = []

    def timed(apply_model: Callable[..., Tensor], call: dict[str, Any]) -> Tensor:
        start = time.perf_counter()
        result = apply_model(call["input"], call["timestep"], **call["c"])
        calls.append(time.perf_counter() - start)
        return result

    clone = model.clone()
    clone.set_model_unet_function_wrapper(timed)
    levels = sampling.noise_levels(model, DEFAULT)
    sigmas = torch.tensor([*(float(levels[step]) for step in TIMED), 0.0])
    noise = batch.noise()
    states = torch.stack([noise * (1 + sigma**2).sqrt() for sigma in sigmas[:-1]])
    sampling.predictions_on(clone, batch, Trajectory(sigmas, states, states, noise))
    return sum(calls) / len(calls)


def reuse(report: Report, folders: Sequence[Path]) -> None:
    """Take over times that stand beside pictures of another size: these do not depend on it."""
    for folder in folders:
        timed = (one for one in Report.read(folder / "results.json").variants if one.seconds)
        for other in timed:
            own = report.find_or_add(other.name, other.kind)
            if len(other.seconds) > len(own.seconds):
                own.seconds, own.plain_seconds = other.seconds, other.plain_seconds


def add_published(report: Report, variants: Variants, folder: Path) -> None:
    """The speed-ups on full-width SD 1.5 that the benchmark has published for 768 x 768."""
    cases = Results.read(folder).cases
    case = next(
        one for one in cases if one.part == "unet" and one.model == "SD 1.5" and one.width == 768
    )
    speedups = {
        (row.measured.setting or "", row.measured.name): row.speedup for row in compare(case)
    }
    for variant in variants:
        if variant.published in speedups:
            found = speedups[variant.published]
            report.find_or_add(variant.name, variant.kind).published = found.median
