"""``quality measure --model wan``: how near clips stay to plain's, and how much they flicker."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import torch
from comfy.model_patcher import ModelPatcher
from rich.console import Console
from rich.progress import track
from torch import Tensor

from ..trained import clips, codec, text, weights
from ..trained.motion import FRAMES
from ..waiting import waiting
from . import metrics, perceptual, places, sampling, session, tables, yardsticks
from .bench import ROWS
from .effort import Effort, EffortWatch
from .patches import PictureVariant
from .regimes import Regime
from .report import Report
from .sampling import Batch

HELD_OUT_SEED = 1
"""Of clips drawn for measuring alone: no clip of these was trained on."""
HELD_OUT = 256
SLIDES = " sliding "
"""In a caption: all that is seen moves in one direction."""


def run(options: argparse.Namespace, console: Console) -> None:
    """Every regime in turn; a variant whose numbers are there is not measured again.

    Raises RuntimeError where the results in place are of other weights.
    """
    with waiting(console, "Loading the model"):
        model = weights.load(options.weights, options.device, getattr(torch, options.precision))
        mark = weights.fingerprint(weights.load(options.weights, options.device))
    for regime in options.regimes:
        with waiting(console, "Encoding the captions"):
            batches = make_batches(options.kept, options.pairs, options.tokens, regime)
        place = places.of_regime(options.out, regime) / "results.json"
        report = session.open_report(place, mark, options)
        report.settings = {
            "clips": options.pairs,
            "computed in": session.name_precisions(report.settings, options),
            "tokens": f"{FRAMES} x {options.tokens} x {options.tokens}",
            "sampler": str(regime),
        }
        with waiting(console, "Listing the variants, with EasyCache's thresholds"):
            variants = session.list_all(model, batches[0], regime, report, options)
        chosen = session.choose(variants, options.only)
        _measure(model, batches, regime, chosen, report, place, console)
        report.sort([variant.name for variant in variants])
        report.write(place)
        console.print(tables.build_table(report, options.against))
        console.print(f"Numbers: {place}", soft_wrap=True)


@dataclass(frozen=True)
class HeldOut:
    """Drawn clips that were not trained on. starts: (count, 12, F, H, W), their latents."""

    captions: list[str]
    starts: Tensor

    @staticmethod
    def load(folder: Path, count: int, tokens: int, regime: Regime) -> HeldOut:
        """folder: where drawn clips are kept.

        Where ``regime`` denoises in part, the clips are such in which the whole picture slides.
        """
        data = clips.load(folder, HELD_OUT, HELD_OUT_SEED)
        fitting = [
            row
            for row, caption in enumerate(data.captions)
            if SLIDES in caption or not regime.is_partial
        ]
        rows = torch.tensor(fitting[:count])
        side = tokens * codec.PIXELS_PER_TOKEN
        pixels = data.crops(rows, side, FRAMES, torch.Generator().manual_seed(0))
        return HeldOut([data.captions[row] for row in rows.tolist()], codec.split_bands(pixels))


def make_batches(folder: Path, count: int, tokens: int, regime: Regime) -> list[Batch]:
    """Clip n has the noise of seed n. folder: where drawn clips are kept."""
    held_out = HeldOut.load(folder, count, tokens, regime)
    encoder = text.build_encoder()
    prompts = torch.stack([text.encode(encoder, caption) for caption in held_out.captions])
    nothing = text.encode(encoder, "")[None]
    shape = (codec.CHANNELS, FRAMES, tokens, tokens)
    return [
        Batch(
            some,
            nothing,
            tuple(range(first, first + len(some))),
            shape,
            held_out.starts[first : first + len(some)] if regime.is_partial else None,
        )
        for first, some in zip(range(0, count, ROWS), prompts.split(ROWS), strict=True)
    ]


def make_clips(
    model: ModelPatcher, variant: PictureVariant, batches: list[Batch], regime: Regime
) -> tuple[Tensor, Effort]:
    """(count, 3, F, H, W) in [0, 1], and what they took.

    A node draws with the batch's number as its seed, so that its luck varies too.
    """
    made: list[Tensor] = []
    watch = EffortWatch()
    for number, batch in enumerate(batches):
        patched = watch.attach(variant.patch(model, seed=number))
        latent = sampling.sample(patched, batch, regime.with_steps(variant.steps)).latent
        made.append(sampling.pictures(model, latent))
    return torch.cat(made), watch.effort


def _measure(
    model: ModelPatcher,
    batches: list[Batch],
    regime: Regime,
    variants: list[PictureVariant],
    report: Report,
    place: Path,
    console: Console,
) -> None:
    with waiting(console, "Plain clips"):
        plain, effort = make_clips(model, yardsticks.PLAIN, batches, regime)
    for variant in track(variants, regime.name, console=console):
        measured = report.find_or_add(variant.name, variant.kind)
        if len(measured.st_lpips) == len(plain):
            continue
        made, own = make_clips(model, variant, batches, regime)
        measured.squared_error = metrics.squared_error(made, plain).tolist()
        measured.st_lpips = perceptual.st_lpips_of_clips(made, plain).tolist()
        measured.flicker = metrics.flicker(made, plain).tolist()
        measured.calls, measured.pairs = own.rows / effort.rows, own.pairs / effort.pairs
        report.write(place)
