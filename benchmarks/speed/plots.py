"""Results as pictures: speed-up by resolution, planning by tokens, errors by attention."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl

from .results import Case, Correction, Planning, Results
from .summary import Row, compare, slope

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

TRANSFORMER_PARTS = {"transformer": "whole call", "transformer attention": "attention alone"}


def draw(results: Results, folder: Path) -> list[Path]:
    """Every picture that the results have numbers for."""
    files: list[Path] = []
    for model, cases in _by_model(results.cases).items():
        file = folder / f"speed-up-{_file_name(model)}.png"
        files.append(_save(_speedups(model, cases), file))
    if results.planning:
        files.append(_save(_planning(results.planning), folder / "planning.png"))
    transformers = [case for case in results.cases if case.part in TRANSFORMER_PARTS]
    if transformers:
        files.append(_save(_transformers(transformers), folder / "transformers.png"))
    if results.correction:
        files.append(_save(_correction(results.correction), folder / "correction.png"))
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
            for row in compare(case):
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


def _transformers(cases: list[Case]) -> Any:
    """One panel per part, one group of bars per case, one bar per variant."""
    parts = [part for part in TRANSFORMER_PARTS if any(case.part == part for case in cases)]
    figure, axes = plt.subplots(len(parts), 1, figsize=(9, 3.6 * len(parts)), squeeze=False)
    for axis, part in zip(axes[:, 0], parts, strict=True):
        same = [case for case in cases if case.part == part]
        _bars(axis, same)
        axis.set_ylabel(f"speed-up, {TRANSFORMER_PARTS[part]}")
        names = [f"{case.model}\n{case.width} x {case.height}{_frames(case)}" for case in same]
        axis.set_xticks(range(len(same)), names)
    axes[0][0].legend(fontsize=8)
    return figure


def _frames(case: Case) -> str:
    return "" if case.frames == 1 else f", {case.frames} frames"


def _bars(axis: Any, cases: list[Case]) -> None:
    found = [[row for row in compare(case) if row.measured.kind != "plain"] for case in cases]
    names = list(
        dict.fromkeys((r.measured.setting, r.measured.kind) for some in found for r in some)
    )
    width = 0.8 / max(len(names), 1)
    for number, (setting, kind) in enumerate(names):
        places = [
            (place + (number - (len(names) - 1) / 2) * width, row.speedup)
            for place, some in enumerate(found)
            for row in some
            if (row.measured.setting, row.measured.kind) == (setting, kind)
        ]
        ratios = [ratio for _, ratio in places]
        bars = axis.bar(
            [place for place, _ in places],
            [ratio.median for ratio in ratios],
            width,
            yerr=[[r.median - r.low for r in ratios], [r.high - r.median for r in ratios]],
            capsize=3,
            color="lightgrey" if kind == "limit" else COLOURS["ours"][number // 2],
            edgecolor="black",
            linewidth=0.6,
            label=f"{setting}: {kind}",
        )
        axis.bar_label(bars, fmt="%.2f", fontsize=8, label_type="center")
    axis.axhline(1, color="grey", linewidth=0.8)


def _correction(correction: list[Correction]) -> Any:
    """One panel per reduction, with the prompt beside; a colour per noise."""
    beside = [one for one in correction if one.prompt_tokens]
    reductions = list(dict.fromkeys(one.reduction for one in beside))
    figure, axes = plt.subplots(
        1, len(reductions), figsize=(4 * len(reductions), 4), sharey=True, squeeze=False
    )
    for axis, reduction in zip(axes[0], reductions, strict=True):
        same = [one for one in beside if one.reduction == reduction]
        noises = dict.fromkeys(one.noise for one in same)
        for noise, colour in zip(noises, itertools.cycle(COLOURS["ours"]), strict=False):
            points = [one for one in same if one.noise == noise]
            factors = [one.sharpness for one in points]
            without = [100 * one.without for one in points]
            corrected = [100 * one.corrected for one in points]
            axis.loglog(factors, without, "o--", color=colour, markersize=3)
            axis.loglog(
                factors, corrected, "o-", color=colour, markersize=3, label=f"noise {noise:g}"
            )
        axis.set_title(reduction, fontsize=9)
        axis.set_xlabel("scores times (diffuse to peaked)")
        axis.set_xticks(factors, [f"{factor:g}" for factor in factors])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel(
        "squared error in %\ndashed: without log of sizes, solid: with it", fontsize=9
    )
    axes[0][0].legend(fontsize=8)
    return figure


def _save(figure: Any, file: Path) -> Path:
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    plt.close(figure)
    return file
