"""The command ``quality measure``: one regime after the other."""

from __future__ import annotations

import argparse
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .. import loading, machine
from ..trained import weights
from ..waiting import waiting
from . import cache_thresholds, measure, places, tables, timing, yardsticks
from .bench import PREDICTED, ROWS, Bench
from .pairs import Pairs
from .patches import PictureVariant
from .regimes import DEFAULT, Regime
from .report import Report
from .sampling import Batch
from .variants import list_variants


def run(options: argparse.Namespace, console: Console) -> None:
    """Raises RuntimeError where the results in place are of other weights."""
    with waiting(console, "Loading the model and the captions"):
        model = weights.load(options.weights, options.device, getattr(torch, options.precision))
        exact = weights.load(options.weights, options.device)
        judge = exact if options.kind == "unet" else weights.load(device=options.device)
        mark = weights.fingerprint(exact)
        pairs = Pairs.make(options.pairs, options.tokens, options.kept)
    for regime in options.regimes:
        kept = kept_runs(options.kept, mark, options.tokens, regime, options.precision)
        bench = Bench(model, exact, judge, pairs, regime, kept)
        _measure(bench, mark, options, console)


def kept_runs(folder: Path, mark: str, tokens: int, regime: Regime, precision: str) -> Path:
    """Where the pictures of one model in one regime are kept."""
    return folder / f"runs-{mark}-{tokens}-{precision}" / regime.name


def _measure(bench: Bench, mark: str, options: argparse.Namespace, console: Console) -> None:
    place = places.of_regime(options.out, bench.regime) / "results.json"
    report = open_report(place, mark, options)
    report.settings = _describe(bench.regime, options, report.settings)
    with waiting(console, "Listing the variants, with EasyCache's thresholds"):
        first = bench.pairs.batches(ROWS)[0]
        variants = list_all(bench.model, first, bench.regime, report, options)
    chosen = choose(variants, options.only)
    columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        # Goes on where no variant is being measured, too.
        progress.add_task("all that is measured", total=None)
        if "predictions" in options.parts:
            measure.measure_predictions(bench, chosen, report, place, progress)
        if "pictures" in options.parts:
            if options.precision == "bfloat16":
                measure.measure_floor(bench, report, place)
            measure.measure_pictures(bench, chosen, report, place, progress)
        if "speed" in options.parts and bench.regime == DEFAULT:
            timed = timing.TOKENS[options.kind]
            rounds = options.rounds
            timing.measure(bench.model, bench.pairs, chosen, rounds, timed, report, place, progress)
    timing.reuse(report, places.list_results(options.out.parent, options.kind))
    timing.add_published(report, chosen, places.SPEED_RESULTS)
    report.sort([variant.name for variant in variants])
    report.write(place)
    console.print(tables.build_table(report, options.against))
    console.print(f"Numbers: {place}", soft_wrap=True)


def open_report(place: Path, mark: str, options: argparse.Namespace) -> Report:
    """What was measured so far with the weights of this fingerprint.

    Raises RuntimeError where the results in place are of other weights.
    """
    report = Report.read(place)
    if report.model.get("fingerprint", mark) != mark:
        raise RuntimeError(f"{place} was measured with other weights, expected {mark}; remove it")
    report.machine = machine.describe(options.device, loading.ROOT)
    report.model = {"file": options.weights.name, "fingerprint": mark}
    return report


def _describe(
    regime: Regime, options: argparse.Namespace, earlier: dict[str, Any]
) -> dict[str, object]:
    """What the numbers are to be read with. earlier: the same of what was measured before."""
    timed = timing.TOKENS[options.kind]
    stride = {1: "single", 2: "2nd"}[measure.find_stride(regime)]
    settings: dict[str, object] = {
        "pairs": options.pairs,
        "computed in": name_precisions(earlier, options),
        "tokens": f"{options.tokens} x {options.tokens}",
        "sampler": str(regime),
        "predictions": f"{PREDICTED} pictures, every {stride} step",
        "speed": f"{timed} x {timed} tokens, 1 row, {len(timing.TIMED)} calls a round",
    }
    note = options.note or earlier.get("note")
    return {**settings, "note": note} if note else settings


def name_precisions(earlier: dict[str, Any], options: argparse.Namespace) -> str:
    """Those of the rows that were measured before, and of those that are measured now."""
    before: str = earlier.get("computed in", options.precision)
    return before if options.precision in before else f"{before}, some rows in {options.precision}"


def list_all(
    model: ModelPatcher,
    first: Batch,
    regime: Regime,
    report: Report,
    options: argparse.Namespace,
) -> list[PictureVariant]:
    """All that can be measured.

    The thresholds of EasyCache are found first, on ``first``, unless no variant with it is wanted.
    """
    wanted = options.only is None or any(
        name.startswith(("EasyCache", "*")) for name in options.only
    )
    if wanted and not report.thresholds:
        # Other pictures leave out other calls.
        report.thresholds = cache_thresholds.find(model, first, regime)
    return [
        *list_variants(options.model, regime),
        *yardsticks.list_caches(report.thresholds),
    ]


def choose(variants: list[PictureVariant], names: list[str] | None) -> list[PictureVariant]:
    """Those whose names fit one of these, in which * stands for anything; all for None."""
    if names is None:
        return variants
    for name in names:
        if "*" not in name and name not in [variant.name for variant in variants]:
            known = "; ".join(variant.name for variant in variants)
            raise RuntimeError(f"--only is {name!r}, expected one or several of: {known}")
    return [
        variant for variant in variants if any(fnmatchcase(variant.name, name) for name in names)
    ]
