"""Plots: picture error against speed-up, error of single steps against noise, training loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from .report import Measured, Report

mpl.use("Agg")

import matplotlib.pyplot as plt

STYLES: dict[str, dict[str, Any]] = {
    "ours": {"color": "tab:blue", "marker": "o"},
    "peer": {"color": "tab:red", "marker": "s"},
}
SIGMA_LINES = (
    "Token Merge 0.5",
    "tomesd 0.5",
    "Token Merge 0.5, random",
    "Token Merge 0.5, keys and values",
    "Token Merge 0.5, queries",
    "Token Downsample ×2",
    "Token Downsample ×2, area",
    "queries merged 0.5, Downsample ×2",
    "HyperTile",
    "candidate: merge 0.5, sized",
    "candidate: merge 0.5, keys and values, chosen keys, sized",
)


def pareto(report: Report, place: Path) -> Path:
    """PSNR of finished pictures against the measured speed-up; up and to the right is better."""
    figure, axis = plt.subplots(figsize=(10, 6.5))
    for one in report.variants:
        if one.speedup is None or one.psnr is None or one.kind not in STYLES:
            continue
        axis.scatter(one.speedup, one.psnr, s=45, **STYLES[one.kind])
        axis.annotate(
            one.name, (one.speedup, one.psnr), xytext=(6, 3), textcoords="offset points", fontsize=7
        )
    for kind, style in STYLES.items():
        axis.scatter([], [], label=kind, **style)
    tokens = report.settings["speed"].split(",")[0]
    axis.set_xlabel(f"speed-up over plain, {tokens}, {report.machine['processor']}")
    axis.set_ylabel("PSNR of the finished picture against plain (dB)")
    axis.set_title(
        f"{report.settings['pairs']} seeds and prompts, {report.settings['tokens']} tokens, "
        f"{report.settings['sampler']}",
        fontsize=10,
    )
    axis.grid(alpha=0.3)
    axis.legend()
    return _save(figure, place)


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


def _line(axis: Any, one: Measured) -> None:
    dashes = {"ours": "-", "peer": "--", "candidate": ":"}[one.kind]
    axis.semilogy(one.velocity_error, dashes, marker=".", label=one.name)


def loss(losses: list[float], tokens: list[int], place: Path, window: int = 50) -> Path:
    """The training loss as a running mean. tokens: a side, of every step."""
    figure, axis = plt.subplots(figsize=(8, 4))
    values = np.array(losses)
    running = np.convolve(values, np.ones(window) / window, mode="valid")
    axis.plot(values, color="tab:blue", alpha=0.15)
    axis.plot(np.arange(len(running)) + window - 1, running, color="tab:blue")
    top = float(running.max())
    for step in range(len(tokens)):
        if step == 0 or tokens[step] != tokens[step - 1]:
            axis.axvline(step, color="grey", linewidth=0.8)
            axis.text(step, top * 0.93, f" {tokens[step]} x {tokens[step]} tokens")
    axis.set_ylim(0, top)
    axis.set_xlabel("step")
    axis.set_ylabel(f"loss, and its mean over {window} steps")
    axis.grid(alpha=0.3)
    return _save(figure, place)


def _save(figure: Any, place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(place, dpi=110)
    plt.close(figure)
    return place
