"""Every picture that the numbers and the kept runs allow."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import torch
from rich.console import Console

from ..trained import weights
from ..trained.places import find_training_log
from . import curves, places, session, sheets, tables
from .bench import Bench
from .pairs import Pairs
from .regimes import Regime, find_default
from .report import Report, VariantReport
from .sheets import SheetRow
from .variants import list_variants

SHOWN = {
    "unet": (
        "Token Downsample ×2",
        "ToDo ×2",
        "Token Merge 0.5",
        "tomesd 0.5",
        "Token Downsample ×4",
        "Token Downsample ×4, interleaved",
        "ToDo ×4",
        "HyperTile",
        "tomesd 0.7",
    ),
    "flux": (
        "Token Downsample ×2, window",
        "Token Merge 0.2, window",
        "Token Downsample ×2",
        "Token Downsample ×2, unsized",
        "Token Merge 0.5",
        "Token Merge 0.5, unsized",
        "Token Downsample ×4",
        "Token Downsample ×4, interleaved",
        "Token Downsample ×4, nearest-exact",
    ),
}
SEEDS = 8
SAMPLES = 32


def draw(options: Namespace, regime: Regime) -> list[Path]:
    """The plots beside the numbers; sheets of pictures that are kept, none made anew."""
    files: list[Path] = []
    folder = places.of_regime(options.out, regime)
    report = Report.read(folder / "results.json")
    log = find_training_log(options.weights)
    if log.is_file():
        files.append(_loss(log, options.weights.with_name("loss.png")))
    if report.sigmas:
        files.append(curves.error_by_sigma(report, folder / "error-by-sigma.png"))
        # One half of this plot is of finished pictures, the other of single predictions.
        if any(one.psnr is not None and one.speedup is not None for one in report.variants):
            files.append(curves.pareto(report, folder / "quality-against-speed.png"))
    with open(folder / "tables.txt", "w", encoding="utf-8") as file:
        Console(file=file, width=tables.WIDTH).print(tables.build_table(report, options.against))
    files.append(folder / "tables.txt")
    return [*files, *(_sheets(options, regime, report, folder) if report.pictures else [])]


def _sheets(options: Namespace, regime: Regime, report: Report, folder: Path) -> list[Path]:
    """Of as many pictures as plain and each variant have."""
    model = weights.load(options.weights, dtype=getattr(torch, options.precision))
    exact = weights.load(options.weights)
    pairs = Pairs.make(min(SAMPLES, report.pictures), options.tokens, options.kept)
    mark = weights.fingerprint(exact)
    runs = session.kept_runs(options.kept, mark, options.tokens, regime, options.precision)
    bench = Bench(model, exact, exact, pairs, regime, runs)
    samples = bench.make_plain().pictures
    files: list[Path] = []
    if regime == find_default(options.model):
        place = options.weights.with_name("samples.png")
        files.append(sheets.sample_sheet(samples, pairs.captions, place))
    rows = [SheetRow("plain", samples[:SEEDS])]
    for variant in list_variants(options.model, regime):
        measured = report.find_or_add(variant.name, variant.kind)
        if variant.name in SHOWN[options.kind] and measured.squared_error:
            rows.append(SheetRow(_label(measured), bench.make(variant, SEEDS).pictures))
    return [*files, sheets.contact_sheet(rows, folder / "contact-sheet.png")]


def _label(measured: VariantReport) -> str:
    speed = f"{measured.speedup:.2f}x, " if measured.speedup else ""
    return f"{measured.name}\n{speed}{measured.psnr:.1f} dB"


def _loss(log: Path, place: Path) -> Path:
    return curves.training_loss(log, place)
