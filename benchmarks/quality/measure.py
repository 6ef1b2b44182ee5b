"""Every variant against plain: the error of single predictions, then of whole pictures."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from comfy.model_patcher import ModelPatcher
from rich.progress import Progress
from torch import Tensor

from ..trained.target import measure_gain
from . import metrics, sampling
from .pairs import Pairs
from .patches import PictureVariant, Variants
from .report import Report, VariantReport
from .sampling import Batch, Trajectory

ROWS = 4
"""Pictures in one model call."""
PREDICTED = 2
"""Pictures whose steps are predicted by every variant: one batch."""
STRIDE = 2
"""Of the steps that are predicted."""
CHECKED = 4
"""Pictures that are also made in single precision."""


@dataclass(frozen=True)
class Bench:
    """model: plain. exact: the same in single precision. judge: the UNet in single precision, whose
    features are compared.

    kept: folder for plain's runs, which all variants are compared with, and for the pictures of
    every variant, so that an interruption costs one batch.
    """

    model: ModelPatcher
    exact: ModelPatcher
    judge: ModelPatcher
    pairs: Pairs
    steps: int
    kept: Path

    @cached_property
    def features(self) -> metrics.Features:
        return metrics.Features(self.judge, self.pairs.nothing)

    def plain_runs(self, most: int | None = None) -> Iterator[tuple[Batch, Trajectory]]:
        """Plain's run of every batch, made once; a generator, as each is some 60 MB."""
        for number, batch in enumerate(self.pairs.batches(ROWS, most)):
            place = self.kept / f"plain-{number}-{len(batch.seeds)}.pt"
            if not place.exists():
                self.kept.mkdir(parents=True, exist_ok=True)
                torch.save(vars(sampling.sample(self.model, batch, self.steps)), place)
            yield batch, Trajectory(**torch.load(place))

    def pictures(self, variant: PictureVariant, most: int) -> Tensor:
        """The variant's pictures, kept after every batch: (count, 3, H, W)."""
        patched = variant.patch(self.model)
        made: list[Tensor] = []
        for number, batch in enumerate(self.pairs.batches(ROWS, most)):
            place = self.kept / f"{_file_name(variant.name)}-{number}-{len(batch.seeds)}.pt"
            if not place.exists():
                run = sampling.sample(patched, batch, self.steps)
                torch.save(sampling.pictures(self.model, run.latent), place)
            made.append(torch.load(place))
        return torch.cat(made)

    def plain_pictures(self, most: int | None = None) -> Tensor:
        """(count, 3, H, W)."""
        runs = self.plain_runs(most)
        return torch.cat([sampling.pictures(self.model, run.latent) for _, run in runs])


def measure_predictions(
    bench: Bench, variants: Variants, report: Report, place: Path, progress: Progress
) -> None:
    """The error of the variant's output in each step, on the states of plain's own run."""
    batch, run = next(bench.plain_runs(PREDICTED))
    plain = run.every(STRIDE)
    report.sigmas = plain.sigmas[:-1].tolist()
    schedule = bench.model.get_model_object("model_sampling")
    per_output = measure_gain(schedule, plain.sigmas[:-1])[:, None, None, None, None]
    task = progress.add_task("predictions", total=len(variants))
    for variant in variants:
        measured = report.find_or_add(variant.name, variant.kind)
        progress.update(task, description=f"predictions: {variant.name}")
        if not measured.velocity_error:
            found = sampling.predictions_on(variant.patch(bench.model), batch, plain)
            errors = ((found - plain.predictions) / per_output).square()
            measured.velocity_error = errors.mean(dim=(1, 2, 3, 4)).tolist()
            report.write(place)
        progress.advance(task)


def measure_floor(bench: Bench, report: Report, place: Path) -> None:
    """How far plain is from itself in single precision: beyond that no figure says anything."""
    if report.floor is None:
        single = replace(bench, model=bench.exact, kept=bench.kept / "single")
        decibels = metrics.psnr(bench.plain_pictures(CHECKED), single.plain_pictures(CHECKED))
        report.floor = float(decibels.mean())
        report.write(place)


def measure_pictures(
    bench: Bench, variants: Variants, report: Report, place: Path, progress: Progress
) -> None:
    """Whole pictures of the same seeds, variant by variant."""
    drawn = metrics.pooled(_maps(bench, bench.pairs.drawn))
    plain = bench.plain_pictures()
    plain_maps = _maps(bench, plain)
    count = len(plain)
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
            made = bench.pictures(variant, variant.pictures)
            some = len(made)
            maps = _maps(bench, made)
            distances = metrics.feature_distance(maps, [level[:some] for level in plain_maps])
            measured.squared_error = metrics.squared_error(made, plain[:some]).tolist()
            measured.ssim = metrics.ssim(made, plain[:some]).tolist()
            measured.features = distances.tolist()
            measured.kernel_distance = metrics.kernel_distance(metrics.pooled(maps), drawn)
            report.write(place)
        progress.advance(task)


def _twin(report: Report, measured: VariantReport) -> VariantReport | None:
    """An earlier variant whose every prediction was the same: it makes the same pictures."""
    earlier = report.variants[: report.variants.index(measured)]
    same = (one for one in earlier if one.velocity_error == measured.velocity_error != [])
    return next(same, None)


def _maps(bench: Bench, pictures: Tensor) -> list[Tensor]:
    """The features of all pictures, in batches."""
    parts = [bench.features.compute(some) for some in pictures.split(ROWS)]
    return [torch.cat(level) for level in zip(*parts, strict=True)]


def fingerprint(model: ModelPatcher) -> str:
    """Eight characters that say which weights these are."""
    digest = hashlib.sha256()
    for weight in model.model.diffusion_model.parameters():
        digest.update(weight.detach().cpu().numpy().tobytes())
    return digest.hexdigest()[:8]


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)
