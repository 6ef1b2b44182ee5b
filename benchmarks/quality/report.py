"""What was measured, kept as JSON after every variant; summaries are computed from it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import log10
from pathlib import Path
from typing import Any

ROUNDING = 1e-6
"""This is a squared error: the unpatched model in bfloat16 is some 60 dB from itself in single
precision."""


@dataclass
class VariantReport:
    """One variant.

    squared_error, st_lpips: of each finished picture against the original of the same seed.
    flicker: of each finished clip, see metrics.py. calls: of the model, as a share of those of the
    unpatched model, counted by rows. pairs: queries times keys in all its self-attention, as a
    share too. commit: that the last of it was measured with, see machine.py; "" where that was not
    noted.
    """

    name: str
    kind: str
    squared_error: list[float] = field(default_factory=list)
    st_lpips: list[float] = field(default_factory=list)
    flicker: list[float] = field(default_factory=list)
    calls: float | None = None
    pairs: float | None = None
    commit: str = ""

    @property
    def decibels(self) -> list[float]:
        """PSNR, picture by picture; equal pictures count as what rounding alone would give."""
        return [-10 * log10(max(error, ROUNDING)) for error in self.squared_error]

    def add(self, more: VariantReport) -> None:
        """The same variant's numbers of further pictures, put behind those that are here."""
        self.squared_error += more.squared_error
        new = len(more.squared_error) / len(self.squared_error)
        if more.calls is not None and more.pairs is not None:
            self.calls = (self.calls or 0) * (1 - new) + more.calls * new
            self.pairs = (self.pairs or 0) * (1 - new) + more.pairs * new
        self.st_lpips += more.st_lpips
        self.flicker += more.flicker
        self.commit = more.commit


@dataclass
class Report:
    """machine, model, settings: what the numbers depend on. thresholds: of EasyCache, by what it is
    to leave.
    """

    machine: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
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
