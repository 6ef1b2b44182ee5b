"""Every variant against plain: the error of single predictions, then of whole pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from rich.progress import Progress
from torch import Tensor

from ..trained.target import measure_gain
from . import metrics, perceptual, sampling
from .bench import ROWS, Bench, Made
from .patches import PictureVariant, Variants
from .regimes import Regime
from .report import Report, VariantReport

CHECKED = 4
"""Pictures that are also made in single precision."""


def find_stride(regime: Regime) -> int:
    """Of the steps that are predicted: all where they are few, as each may be unlike the others."""
    return 2 if regime.steps >= 20 else 1


def measure_predictions(
    bench: Bench, variants: Variants, report: Report, place: Path, progress: Progress
) -> None:
    """The error of the variant's output in each step, on the states of plain's own run."""
    batch, run = bench.first_run()
    plain = run.every(find_stride(bench.regime))
    report.sigmas = plain.sigmas[:-1].tolist()
    schedule = bench.model.get_model_object("model_sampling")
    gain = measure_gain(schedule, plain.sigmas[:-1])  # (steps,)
    # A yardstick changes the steps, so it has no error of a single one.
    chosen = [variant for variant in variants if variant.kind != "yardstick"]
    task = progress.add_task("predictions", total=len(chosen))
    for variant in chosen:
        measured = report.find_or_add(variant.name, variant.kind)
        progress.update(task, description=f"predictions: {variant.name}")
        if not measured.velocity_error:
            patched = variant.patch(bench.model)
            found = sampling.predictions_on(patched, batch, plain, bench.regime.cfg)
            errors = (found - plain.predictions).square().flatten(1).mean(1)  # (steps,)
            measured.velocity_error = (errors / gain.square()).tolist()
            report.write(place)
        progress.advance(task)


def measure_floor(bench: Bench, report: Report, place: Path) -> None:
    """How far plain is from itself in single precision: beyond that no figure says anything."""
    if report.floor is None:
        single = replace(bench, model=bench.exact, kept=bench.kept / "single")
        made, exact = (each.make_plain(CHECKED).pictures for each in (bench, single))
        report.floor = float(metrics.psnr(made, exact).mean())
        report.write(place)


def measure_pictures(
    bench: Bench, variants: Variants, report: Report, place: Path, progress: Progress
) -> None:
    """Whole pictures of the same seeds, variant by variant."""
    drawn = metrics.pooled(_maps(bench, bench.pairs.drawn))
    plain = bench.make_plain()
    plain_maps = _maps(bench, plain.pictures)
    count = len(plain.pictures)
    if report.pictures < count:
        vectors = metrics.pooled(plain_maps)
        report.plain_kernel_distance = metrics.kernel_distance(vectors, drawn)
        report.pictures = count
        report.write(place)
    chosen = [variant for variant in variants if variant.pictures]
    task = progress.add_task("pictures", total=len(chosen))
    for variant in chosen:
        measured = report.find_or_add(variant.name, variant.kind)
        progress.update(task, description=f"pictures: {variant.name}")
        twin = _twin(report, measured)
        if twin:
            measured.copy_pictures(twin)
            report.write(place)
        elif len(measured.squared_error) < min(variant.pictures, count):
            _compare(bench, variant, measured, plain, plain_maps, drawn)
            report.write(place)
        progress.advance(task)


def _compare(
    bench: Bench,
    variant: PictureVariant,
    measured: VariantReport,
    plain: Made,
    plain_maps: list[Tensor],
    drawn: Tensor,
) -> None:
    """Fill ``measured``. plain_maps, drawn: features of plain's pictures and of drawn ones."""
    made = bench.make(variant, variant.pictures)
    some = len(made.pictures)
    others = plain.pictures[:some]
    maps = _maps(bench, made.pictures)
    distances = metrics.feature_distance(maps, [level[:some] for level in plain_maps])
    measured.squared_error = metrics.squared_error(made.pictures, others).tolist()
    measured.ssim = metrics.ssim(made.pictures, others).tolist()
    measured.features = distances.tolist()
    measured.st_lpips = perceptual.st_lpips(made.pictures, others).tolist()
    measured.kernel_distance = metrics.kernel_distance(metrics.pooled(maps), drawn)
    measured.calls, measured.pairs = (
        own / all_of_it
        for own, all_of_it in zip(made.per_picture(), plain.per_picture(), strict=True)
    )


def _twin(report: Report, measured: VariantReport) -> VariantReport | None:
    """An earlier variant whose every prediction was the same: it makes the same pictures."""
    earlier = report.variants[: report.variants.index(measured)]
    same = (one for one in earlier if one.velocity_error == measured.velocity_error != [])
    return next(same, None)


def _maps(bench: Bench, pictures: Tensor) -> list[Tensor]:
    """The features of all pictures, in batches."""
    parts = [bench.features.compute(some) for some in pictures.split(ROWS)]
    return [torch.cat(level) for level in zip(*parts, strict=True)]
