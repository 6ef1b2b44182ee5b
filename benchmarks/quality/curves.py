"""Plots: picture error against speed-up, error of single steps against noise, training loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from ..trained import log as training_log
from ..trained.recipe import Stage
from .report import Report, VariantReport

mpl.use("Agg")

import matplotlib.pyplot as plt

STYLES: dict[str, dict[str, Any]] = {
    "ours": {"color": "tab:blue", "marker": "o"},
    "peer": {"color": "tab:red", "marker": "s"},
}
SIGMA_LINES = (
    "Token Merge 0.5",
    "tomesd 0.5",
    "Token Merge 0.5, keys and values",
    "Token Merge 0.5, queries",
    "TomePatchModel 0.5",
    "Token Downsample ×2",
    "Token Downsample ×4",
    "Token Downsample ×4, interleaved",
    "ToDo ×2",
    "ToDo ×4",
    "HyperTile",
    "Token Downsample ×2, area",
)


def pareto(report: Report, place: Path) -> Path:
    """Error against the measured speed-up, of finished pictures and of single steps.

    Of the variants that all pictures were made with. Up and to the right is better in both panels.
    """
    figure, (pictures, steps) = plt.subplots(1, 2, figsize=(16, 7))
    timed = [
        one
        for one in report.variants
        if one.speedup is not None
        and one.kind in STYLES
        and len(one.squared_error) == report.pictures
        and not one.pictures_of
    ]
    _points(pictures, {one.name: (one, one.psnr) for one in timed})
    _points(steps, {one.name: (one, one.prediction_error) for one in timed})
    pictures.set_ylabel("PSNR of the finished picture against plain (dB)")
    pictures.set_title(f"{report.pictures} seeds and prompts", fontsize=10)
    steps.set_ylabel("mean squared error of the model's output")
    steps.set_yscale("log")
    steps.invert_yaxis()
    steps.set_title(f"Single steps, {report.settings['predictions']}", fontsize=10)
    tokens = report.settings["speed"].split(",")[0]
    for axis in (pictures, steps):
        axis.set_xlabel(f"speed-up over plain, {tokens}, {report.machine['processor']}")
        axis.margins(x=0.25)
        axis.grid(which="both", alpha=0.3)
        for kind, style in STYLES.items():
            axis.scatter([], [], label=kind, **style)
        axis.legend(loc="upper right")
    figure.suptitle(f"{report.settings['tokens']} tokens, {report.settings['sampler']}")
    return _save(figure, place)


def _points(axis: Any, points: dict[str, tuple[VariantReport, float | None]]) -> None:
    for name, (one, height) in points.items():
        if height is not None and one.speedup is not None:
            axis.scatter(one.speedup, height, s=40, **STYLES[one.kind])
            below = -9 if one.kind == "peer" else 3  # peers often stand where ours do
            axis.annotate(
                name, (one.speedup, height), (6, below), textcoords="offset points", fontsize=7
            )


def error_by_sigma(report: Report, place: Path) -> Path:
    """Which part of the schedule tolerates reduction: one line a variant."""
    figure, axis = plt.subplots(figsize=(10, 6))
    by_name = {one.name: one for one in report.variants}
    for name in SIGMA_LINES:
        if name in by_name and by_name[name].velocity_error:
            _line(axis, by_name[name])
    steps = range(len(report.sigmas))
    axis.set_xticks(steps, [f"{sigma:.3g}" for sigma in report.sigmas])
    axis.set_xlabel("sigma, in the order of the steps")
    axis.set_ylabel("mean squared error of the model's output")
    axis.set_title("Error of one step, on the states of plain's own run", fontsize=10)
    axis.grid(which="both", alpha=0.3)
    axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0, -0.12), ncols=3, frameon=False)
    return _save(figure, place)


def _line(axis: Any, one: VariantReport) -> None:
    dashes = {"ours": "-", "peer": "--", "candidate": ":"}[one.kind]
    axis.semilogy(one.velocity_error, dashes, marker=".", label=one.name)


def training_loss(log: Path, place: Path, window: int = 50) -> Path:
    """The loss of every step and its running mean. log: as ``trained.log`` writes it."""
    parts = training_log.read(log)
    figure, axis = plt.subplots(figsize=(8, 4))
    values = np.array([loss for part in parts for loss in part.losses])
    running = np.convolve(values, np.ones(window) / window, mode="valid")
    axis.plot(values, color="tab:blue", alpha=0.15)
    axis.plot(np.arange(len(running)) + window - 1, running, color="tab:blue")
    top = float(running.max())
    first = 0
    for stage in (stage for part in parts for stage in part.recipe.stages):
        if first < len(values):
            axis.axvline(first, color="grey", linewidth=0.8)
            label = f"{_grid(stage)} tokens"
            axis.text(first, top * 0.97, label, va="top", rotation="vertical", size="small")
        first += stage.steps
    axis.set_ylim(0, top)
    axis.set_xlabel("step")
    axis.set_ylabel(f"loss, and its mean over {window} steps")
    axis.grid(alpha=0.3)
    return _save(figure, place)


def _grid(stage: Stage) -> str:
    sides = [stage.tokens] * 2
    return " x ".join(str(side) for side in ([stage.frames, *sides] if stage.frames > 1 else sides))


def _save(figure: Any, place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(place, dpi=110)
    plt.close(figure)
    return place
