"""The command ``quality measure``: regime after regime, every variant against the original."""

from __future__ import annotations

import argparse
import fnmatch
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from rich.console import Console
from rich.progress import track
from torch import Tensor

from .. import loading, machine
from ..trained import weights
from ..trained.places import WEIGHTS, find_kind
from ..trained.wan import FRAMES
from ..waiting import waiting
from . import batches, cache_thresholds, metrics, perceptual, sampling, tables, yardsticks
from .effort import Effort, EffortWatch
from .patches import PictureVariant
from .regimes import Regime
from .report import Report, VariantReport
from .sampling import Batch
from .variants import list_variants


def run(options: argparse.Namespace, console: Console) -> None:
    """Pictures of a variant whose numbers are there are not made again.

    Raises RuntimeError where the results in place are of other weights.
    """
    model = load_model(options, console)
    mark = weights.fingerprint(weights.load(WEIGHTS[options.model]))
    for regime in options.regimes:
        made = make_batches(options, console)
        place = options.out / regime.name / "results.json"
        report = open_report(place, mark, options)
        report.settings = _describe(regime, options, report.settings)
        with waiting(console, "Listing the variants, with EasyCache's thresholds"):
            variants = list_all(model, made[0], regime, report.thresholds, options)
        chosen = choose(variants, options.only)
        _measure(model, made, regime, chosen, report, place, console)
        report.sort([variant.name for variant in variants])
        report.write(place)
        console.print(tables.build_table(report, options.against))
        console.print(f"Numbers: {place}", soft_wrap=True)


def load_model(options: argparse.Namespace, console: Console) -> ModelPatcher:
    """In the precision and on the device that are asked for."""
    with waiting(console, "Loading the model"):
        dtype = getattr(torch, options.precision)
        return weights.load(WEIGHTS[options.model], options.device, dtype)


def make_batches(options: argparse.Namespace, console: Console) -> list[Batch]:
    """The pictures or clips that all variants are to make."""
    with waiting(console, "Encoding the captions"):
        return batches.make_batches(options.model, options.pairs, options.tokens)


def make(
    model: ModelPatcher, variant: PictureVariant, made: Sequence[Batch], regime: Regime
) -> tuple[Tensor, Effort]:
    """(count, 3, ..., H, W) in [0, 1], and what they took.

    A node draws with the batch's number as its seed, so that its luck varies too.
    """
    found: list[Tensor] = []
    watch = EffortWatch()
    for batch in made:
        patched = watch.attach(variant.patch(model, seed=batch.number))
        latent = sampling.sample(patched, batch, regime.with_steps(variant.steps))
        found.append(sampling.pictures(model, latent))
    return torch.cat(found), watch.effort


def open_report(place: Path, mark: str, options: argparse.Namespace) -> Report:
    """What was measured so far with the weights of this fingerprint.

    Raises RuntimeError where the results in place are of other weights.
    """
    report = Report.read(place)
    if report.model.get("fingerprint", mark) != mark:
        raise RuntimeError(f"{place} was measured with other weights, expected {mark}; remove it")
    report.machine = machine.describe(options.device, loading.ROOT)
    report.model = {"name": options.model, "fingerprint": mark}
    return report


def list_all(
    model: ModelPatcher,
    first: Batch,
    regime: Regime,
    thresholds: dict[str, float],
    options: argparse.Namespace,
) -> list[PictureVariant]:
    """All that can be measured.

    thresholds: of EasyCache. Where there are none, they are found on ``first`` and put in, unless
    no variant with it is wanted.
    """
    wanted = options.only is None or any(
        name.startswith(("EasyCache", "*")) for name in options.only
    )
    if wanted and not thresholds:
        # Other pictures leave out other calls.
        thresholds.update(cache_thresholds.find(model, first.take_one(), regime))
    return [*list_variants(options.model, regime), *yardsticks.list_caches(thresholds)]


def choose(variants: list[PictureVariant], names: list[str] | None) -> list[PictureVariant]:
    """Those whose names fit one of these patterns, as of a shell; all for None.

    Raises RuntimeError where a pattern fits none.
    """
    if names is None:
        return variants
    known = [variant.name for variant in variants]
    for name in names:
        if not fnmatch.filter(known, name):
            listed = "; ".join(known)
            raise RuntimeError(f"--only is {name!r}, expected one or several of: {listed}")
    fitting = {one for name in names for one in fnmatch.filter(known, name)}
    return [variant for variant in variants if variant.name in fitting]


def _measure(
    model: ModelPatcher,
    made: Sequence[Batch],
    regime: Regime,
    variants: Sequence[PictureVariant],
    report: Report,
    place: Path,
    console: Console,
) -> None:
    @cache
    def unpatched(number: int) -> tuple[Tensor, Effort]:
        return make(model, yardsticks.UNPATCHED, [made[number]], regime)

    count = sum(len(batch.seeds) for batch in made)
    for variant in track(variants, regime.name, console=console):
        entry = report.find_or_add(variant.name, variant.kind)
        done = len(entry.squared_error)
        if done >= count:
            continue
        if done % batches.ROWS:  # the last batch had fewer pictures than now: all are made again
            report.variants.remove(entry)
            entry = report.find_or_add(variant.name, variant.kind)
        for batch in made[len(entry.squared_error) // batches.ROWS :]:
            original, effort = unpatched(batch.number)
            pictures, own = make(model, variant, [batch], regime)
            found = _compare(pictures, original)
            found.calls, found.pairs = own.rows / effort.rows, own.pairs / effort.pairs
            found.commit = report.machine["commit"] or ""
            entry.add(found)
            report.write(place)


def _compare(pictures: Tensor, original: Tensor) -> VariantReport:
    """(B, 3, ..., H, W) twice -> the errors of each."""
    errors = metrics.squared_error(pictures, original).tolist()
    if original.ndim == 5:
        st_lpips = perceptual.st_lpips_of_clips(pictures, original)
        flicker = metrics.flicker(pictures, original).tolist()
    else:
        st_lpips, flicker = perceptual.st_lpips(pictures, original), []
    return VariantReport("", "", errors, st_lpips.tolist(), flicker)


def _describe(
    regime: Regime, options: argparse.Namespace, earlier: dict[str, Any]
) -> dict[str, Any]:
    """What the numbers are to be read with. earlier: the same of what was measured before."""
    before: str = earlier.get("computed in", options.precision)
    of_both = f"{before}, some rows in {options.precision}"
    frames = f"{FRAMES} x " if find_kind(options.model) == "wan" else ""
    return {
        "pairs": max(options.pairs, earlier.get("pairs", 0)),
        "computed in": before if options.precision in before else of_both,
        "tokens": f"{frames}{options.tokens} x {options.tokens}",
        "sampler": str(regime),
    }
