"""The command ``quality sheet``: what people see of the variants, at full size."""

from __future__ import annotations

import argparse

import torch
from rich.console import Console
from rich.progress import track

from ..sheet import draw_sheet
from . import measure, metrics, yardsticks
from .report import VariantReport


def run(options: argparse.Namespace, console: Console) -> None:
    """A row for each picture: the unpatched model's and that of each variant, with its PSNR."""
    model = measure.load_model(options, console)
    for regime in options.regimes:
        made = measure.make_batches(options, console)
        variants = measure.choose(
            measure.list_all(model, made[0], regime, {}, options), options.only
        )
        unpatched, _ = measure.make(model, yardsticks.UNPATCHED, made, regime)
        columns = [unpatched]
        captions = [[caption] for batch in made for caption in batch.captions]
        for variant in track(variants, regime.name, console=console):
            pictures, _ = measure.make(model, variant, made, regime)
            columns.append(pictures)
            errors = metrics.squared_error(pictures, unpatched).tolist()
            found = VariantReport(variant.name, variant.kind, errors).decibels
            for row, decibels in zip(captions, found, strict=True):
                row.append(f"{variant.name}: {decibels:.1f} dB")
        place = options.out / f"{regime.name}.jpg"
        pixels = torch.stack(columns, 1).flatten(0, 1)
        texts = [text for row in captions for text in row]
        draw_sheet(pixels if pixels.ndim == 5 else pixels[:, :, None], texts, place, len(columns))
        console.print(f"Sheet: {place}", soft_wrap=True)
