"""One plot for each family of models: the error of each variant, and the time that it takes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from .. import intervals
from ..speed.results import Case
from .equal_time import SHAPES, Row, Shape, list_rows
from .patches import ALL_STEPS
from .places import RESULTS
from .regimes import Regime

DRAWN = ("unet", "flux", "wan")
"""Of each model its first regime."""
ASIDE = ("behind", "stratified", "no local windows")
"""Rows with these words are in the tables alone."""
MARK = "Results"
"""The picture's file has a mark of what it shows under this name."""


@dataclass(frozen=True)
class Series:
    """Variants that a line joins. begins: how their names begin. color, marker: matplotlib's.
    reduces_all: whether they are those in all steps.
    """

    label: str
    begins: str
    color: str
    marker: str
    reduces_all: bool = False

    def find(self, rows: Sequence[Row]) -> list[Row]:
        of_kind = (row for row in rows if row.name.endswith(ALL_STEPS) == self.reduces_all)
        return [row for row in of_kind if row.name.startswith(self.begins)]


SERIES = (
    Series("Token Downsample ×2 (the default), ×4", "Token Downsample", "#d62728", "o"),
    Series("the same in all steps", "Token Downsample", "#f4a6a6", "o", reduces_all=True),
    Series("Token Merge 0.2 (the default), 0.5", "Token Merge", "#ff7f0e", "s"),
    Series("unpatched, fewer steps", "unpatched", "#1f77b4", "v"),
    Series("EasyCache", "EasyCache", "#7f7f7f", "^"),
    Series("ToDo ×2", "ToDo", "#2ca02c", "P"),
    Series("tomesd 0.5", "tomesd", "#9467bd", "X"),
    Series("ComfyUI's HyperTile", "ComfyUI's HyperTile", "#8c564b", "D"),
    Series("TomePatchModel 0.5", "TomePatchModel", "#17becf", "*"),
)


@dataclass(frozen=True)
class Panel:
    """points: by the label of a series (time as a share, PSNR in dB, half of its interval)."""

    title: str
    points: Mapping[str, Sequence[tuple[float, float, float]]]


def list_panels(cases: Sequence[Case], results: Path = RESULTS) -> list[Panel]:
    return [_make_panel(shape, cases, results) for shape in SHAPES if shape.trained in DRAWN]


def _make_panel(shape: Shape, cases: Sequence[Case], results: Path) -> Panel:
    regime, case = shape.regimes[0], shape.find_case(cases)
    made = shape.read_reports(results)
    rows = list_rows(case, {regime: made[regime]}) if case and regime in made else []
    alone = [row for row in rows if not any(word in row.name for word in ASIDE)]
    points = {one.label: _list_points(one.find(alone), regime) for one in SERIES}
    title = f"{shape.name}, {regime.sampler}, {regime.steps} steps"
    return Panel(title, {label: some for label, some in points.items() if some})


def _list_points(rows: Sequence[Row], regime: Regime) -> list[tuple[float, float, float]]:
    found = [(row.times[regime], intervals.mean(row.found[regime].decibels)) for row in rows]
    # Rounded, so that the mark is the same on any machine.
    return sorted(
        (round(time, 3), round(error.mean, 2), round(error.half or 0, 2)) for time, error in found
    )


def draw(panels: Sequence[Panel], place: Path) -> None:
    """Side by side, with one legend, so that no labels meet."""
    from matplotlib.figure import Figure  # only here: it takes a second

    figure = Figure(figsize=(12, 4.6), layout="constrained")
    drawn: dict[str, Any] = {}
    for axes, panel in zip(figure.subplots(1, len(panels)), panels, strict=True):
        drawn |= _draw_panel(axes, panel)
    labels = [one.label for one in SERIES if one.label in drawn]
    handles = [drawn[label] for label in labels]
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    figure.savefig(place, dpi=110, metadata={MARK: mark(panels)})


def _draw_panel(axes: Any, panel: Panel) -> dict[str, Any]:
    """What a legend can show, by the labels of the series."""
    drawn = {}
    for one in SERIES:
        if one.label in panel.points:
            times, means, halves = zip(*panel.points[one.label], strict=True)
            look = {"color": one.color, "marker": one.marker, "capsize": 2}
            drawn[one.label] = axes.errorbar(times, means, halves, **look)
    axes.set(title=panel.title, xlim=(0, 1), xlabel="time, unpatched = 1", ylabel="PSNR, dB")
    axes.grid(alpha=0.3)
    return drawn


def mark(panels: Sequence[Panel]) -> str:
    """Of what is drawn."""
    return hashlib.sha256(repr(panels).encode()).hexdigest()[:12]


def read_mark(place: Path) -> str:
    """Of what the picture in this file shows."""
    with Image.open(place) as picture:
        return str(picture.info.get(MARK, ""))
