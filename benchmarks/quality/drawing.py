"""Every picture that the numbers and the kept runs allow."""

from __future__ import annotations

from pathlib import Path

import torch
from rich.console import Console

from ..trained import weights
from ..trained.places import find_training_log
from . import curves, measure, sampling, sheets, tables
from .pairs import Pairs
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
WIDTH = 130


def draw(folder: Path, kind: str, weights_file: Path, kept: Path, tokens: int) -> list[Path]:
    """The plots beside the numbers; sheets of pictures that are kept, none made anew."""
    files: list[Path] = []
    report = Report.read(folder / "results.json")
    log = find_training_log(weights_file)
    if log.is_file():
        files.append(_loss(log, weights_file.with_name("loss.png")))
    if any(one.psnr is not None and one.speedup is not None for one in report.variants):
        files.append(curves.pareto(report, folder / "quality-against-speed.png"))
    if report.sigmas:
        files.append(curves.error_by_sigma(report, folder / "error-by-sigma.png"))
    with open(folder / "tables.txt", "w", encoding="utf-8") as file:
        Console(file=file, width=WIDTH).print(tables.build_table(report))
    files.append(folder / "tables.txt")
    return [*files, *_sheets(report, folder, kind, weights_file, kept, tokens)]


def _sheets(
    report: Report, folder: Path, kind: str, weights_file: Path, kept: Path, tokens: int
) -> list[Path]:
    """Of as many pictures as plain and each variant have."""
    if not report.pictures:
        return []
    model = weights.load(weights_file, dtype=torch.bfloat16)
    exact = weights.load(weights_file)
    pairs = Pairs.make(min(SAMPLES, report.pictures), tokens, kept)
    runs = kept / f"runs-{measure.fingerprint(exact)}-{tokens}"
    bench = measure.Bench(model, exact, exact, pairs, sampling.STEPS, runs)
    samples = bench.plain_pictures()
    sample_sheet = sheets.sample_sheet(
        samples, pairs.captions, weights_file.with_name("samples.png")
    )
    rows = [SheetRow("plain", samples[:SEEDS])]
    for variant in list_variants(kind):
        measured = report.find_or_add(variant.name, variant.kind)
        if variant.name in SHOWN[kind] and measured.squared_error:
            rows.append(SheetRow(_label(measured), bench.pictures(variant, SEEDS)))
    return [sample_sheet, sheets.contact_sheet(rows, folder / "contact-sheet.png")]


def _label(measured: VariantReport) -> str:
    speed = f"{measured.speedup:.2f}x, " if measured.speedup else ""
    return f"{measured.name}\n{speed}{measured.psnr:.1f} dB"


def _loss(log: Path, place: Path) -> Path:
    return curves.training_loss(log, place)
