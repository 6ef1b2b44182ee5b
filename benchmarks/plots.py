"""Results as pictures: speed-up against resolution, planning against tokens."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl

from .results import Case, Planning, Results
from .summary import Row, rows, slope

mpl.use("Agg")

import matplotlib.pyplot as plt

STYLES: dict[str, dict[str, Any]] = {
    "limit": {"linestyle": "--"},
    "ours": {"linewidth": 2.2},
    "peer": {"linestyle": "-."},
}
COLOURS = {
    "limit": ("black",),
    "ours": ("tab:blue", "tab:green", "tab:cyan", "tab:purple", "navy", "tab:olive", "teal"),
    "peer": ("tab:orange", "tab:red", "tab:brown", "tab:pink"),
}


def draw(results: Results, folder: Path) -> list[Path]:
    """Every picture that the results have numbers for."""
    files: list[Path] = []
    for model, cases in _by_model(results.cases).items():
        file = folder / f"speed-up-{_file_name(model)}.png"
        files.append(_save(_speedups(model, cases), file))
    if results.planning:
        files.append(_save(_planning(results.planning), folder / "planning.png"))
    return files


def _file_name(model: str) -> str:
    """ "SD 1.5 (narrow)" -> "sd15-narrow"."""
    return re.sub(r"[^a-z0-9-]", "", model.lower().replace(" (", "-"))


def _by_model(cases: list[Case]) -> dict[str, list[Case]]:
    """Whole model calls of one model, one batch and several or one size."""
    found: defaultdict[str, list[Case]] = defaultdict(list)
    for case in cases:
        if case.part == "unet":
            found[case.model].append(case)
    return {model: sorted(same, key=lambda case: case.width) for model, same in found.items()}


def _speedups(model: str, cases: list[Case]) -> Any:
    """One panel per setting."""
    settings = list(
        dict.fromkeys(one.setting for case in cases for one in case.measured if one.setting)
    )
    figure, axes = plt.subplots(
        1, len(settings), figsize=(5 * len(settings), 4), sharey=True, squeeze=False
    )
    for axis, setting in zip(axes[0], settings, strict=True):
        lines: defaultdict[tuple[str, str], list[tuple[int, Row]]] = defaultdict(list)
        for case in cases:
            for row in rows(case):
                if row.measured.setting == setting:
                    lines[row.measured.kind, row.measured.name].append((case.width, row))
        _lines(axis, lines)
        axis.set_title(setting, fontsize=9)
        axis.set_xlabel("width and height in pixels")
        axis.set_xticks([case.width for case in cases])
    axes[0][0].set_ylabel("speed-up over plain, fused attention")
    figure.suptitle(f"{model}, whole model calls, {cases[0].dtype}: median and range", fontsize=10)
    return figure


def _lines(axis: Any, lines: dict[tuple[str, str], list[tuple[int, Row]]]) -> None:
    colours = {kind: itertools.cycle(names) for kind, names in COLOURS.items()}
    for (kind, name), points in lines.items():
        style = {**STYLES[kind], "color": next(colours[kind])}
        ratios = [row.speedup for _, row in points]
        below = [ratio.median - ratio.low for ratio in ratios]
        above = [ratio.high - ratio.median for ratio in ratios]
        sides = [side for side, _ in points]
        middle = [ratio.median for ratio in ratios]
        axis.errorbar(sides, middle, [below, above], label=name, marker="o", capsize=3, **style)
    axis.axhline(1, color="grey", linewidth=0.8)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)


def _planning(planning: list[Planning]) -> Any:
    """Log-log, so that a method's slope is its exponent."""
    figure, axis = plt.subplots(figsize=(7, 5))
    methods = dict.fromkeys(name for one in planning for name in one.seconds)
    for method in methods:
        points = [one for one in planning if method in one.seconds]
        exponent = slope(planning, method)
        label = method if exponent is None else f"{method} (slope {exponent:.2f})"
        axis.loglog(
            [one.tokens for one in points],
            [1000 * median(one.seconds[method]) for one in points],
            marker="o",
            linestyle="-." if method == "tomesd" else "-",
            label=label,
        )
    axis.set_xlabel("tokens")
    axis.set_ylabel("milliseconds per plan")
    axis.set_title(f"Planning alone, {planning[0].channels} channels, {planning[0].dtype}")
    axis.grid(which="both", alpha=0.3)
    axis.legend(fontsize=8)
    return figure


def _save(figure: Any, file: Path) -> Path:
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    plt.close(figure)
    return file
