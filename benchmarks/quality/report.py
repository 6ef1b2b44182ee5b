"""What was measured, kept as JSON after every variant; summaries are computed from it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import log10
from pathlib import Path
from statistics import fmean, median
from typing import Any

ROUNDING = 1e-6
"""Squared error: some 60 dB part plain in bfloat16 from plain in single precision."""
PICTURE_FIELDS = (
    "squared_error",
    "ssim",
    "features",
    "st_lpips",
    "calls",
    "pairs",
    "kernel_distance",
)
"""What is measured on finished pictures."""


@dataclass
class VariantReport:
    """One variant.

    squared_error, ssim, features, st_lpips: of each finished picture against plain's of the same
    seed. calls: of the model, as a share of plain's, counted by rows. pairs: queries times keys in
    all its self-attention, as a share of plain's.
    flicker: of each finished clip, see metrics.py.
    kernel_distance: of the set to drawn pictures of the same captions. velocity_error: mean
    squared, of the model's output on plain's states, one number a step. seconds, plain_seconds:
    mean of a round's calls, round by round. published: speed-up on SD 1.5 at 768 x 768.
    pictures_of: the variant whose pictures stand for these, as all its predictions are the same.
    """

    name: str
    kind: str
    squared_error: list[float] = field(default_factory=list)
    ssim: list[float] = field(default_factory=list)
    features: list[float] = field(default_factory=list)
    st_lpips: list[float] = field(default_factory=list)
    flicker: list[float] = field(default_factory=list)
    calls: float | None = None
    pairs: float | None = None
    kernel_distance: float | None = None
    velocity_error: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    plain_seconds: list[float] = field(default_factory=list)
    published: float | None = None
    pictures_of: str | None = None

    def copy_pictures(self, twin: VariantReport) -> None:
        """Take over what was measured on the same pictures."""
        for name in PICTURE_FIELDS:
            setattr(self, name, getattr(twin, name))
        self.pictures_of = twin.name

    @property
    def mean_squared_error(self) -> float | None:
        return fmean(self.squared_error) if self.squared_error else None

    @property
    def decibels(self) -> list[float]:
        """PSNR, picture by picture; equal pictures count as what rounding alone would give."""
        return [-10 * log10(max(error, ROUNDING)) for error in self.squared_error]

    @property
    def psnr(self) -> float | None:
        """Mean over the pictures, in decibels."""
        return fmean(self.decibels) if self.squared_error else None

    @property
    def speedup(self) -> float | None:
        """Median over rounds, with the trained model."""
        pairs = zip(self.plain_seconds, self.seconds, strict=True)
        ratios = [plain / own for plain, own in pairs]
        return median(ratios) if ratios else None

    @property
    def prediction_error(self) -> float | None:
        """Mean of the velocity's error over all steps."""
        return fmean(self.velocity_error) if self.velocity_error else None


@dataclass
class Report:
    """machine, model, settings: what the numbers depend on. sigmas: of the steps.

    plain_kernel_distance: of plain's own pictures, ``pictures`` of them, to the drawn ones. floor:
    PSNR of plain against plain in single precision. thresholds: of EasyCache, by what it is to
    leave.
    """

    machine: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    sigmas: list[float] = field(default_factory=list)
    plain_kernel_distance: float | None = None
    pictures: int = 0
    floor: float | None = None
    thresholds: dict[str, float] = field(default_factory=dict)
    variants: list[VariantReport] = field(default_factory=list)

    @classmethod
    def read(cls, place: Path) -> Report:
        """An empty report where the file is missing."""
        if not place.is_file():
            return cls()
        kept = json.loads(place.read_text(encoding="utf-8"))
        variants = [VariantReport(**one) for one in kept.pop("variants")]
        return cls(**kept, variants=variants)

    def write(self, place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(_rounded(asdict(self)), indent=1, ensure_ascii=False)
        unfinished = place.with_suffix(".part")
        unfinished.write_text(_on_one_line(text) + "\n", encoding="utf-8")
        unfinished.replace(place)

    def sort(self, names: Sequence[str]) -> None:
        """In the order of ``names``; variants that are not among them come last."""
        place = {name: number for number, name in enumerate(names)}
        self.variants.sort(key=lambda one: place.get(one.name, len(place)))

    def find_or_add(self, name: str, kind: str) -> VariantReport:
        """The variant's entry, made where there is none."""
        for one in self.variants:
            if one.name == name:
                return one
        self.variants.append(VariantReport(name, kind))
        return self.variants[-1]


def _rounded(value: Any) -> Any:
    """Floats to five significant digits; more would be noise."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value


def _on_one_line(text: str) -> str:
    """Lists of numbers on one line each."""
    return re.sub(r"\[[-\d\s.,e+]+\]", lambda found: re.sub(r"\s+", " ", found[0]), text)
