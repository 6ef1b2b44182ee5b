"""Our nodes beside other ways to make attention cheaper: one table of both small transformers."""

from __future__ import annotations

from pathlib import Path

from .. import intervals, markdown
from .equal_time import LEFT_OUT, NAMES
from .places import RESULTS
from .regimes import FOUR_STEPS, Regime
from .report import Report, VariantReport

COLUMNS = {
    f"{name}, {regime.steps} steps": f"{folder}/{regime.name}"
    for name, folder in (
        ("Flux", "flux-64x64-tokens-from-64"),
        ("Wan", "wan-9x16x16-tokens-from-64"),
    )
    for regime in (Regime("euler", "simple", 8), FOUR_STEPS)
}
HALF = "half of the steps"
HALVED = {"unpatched, 4 steps": HALF, "unpatched, 2 steps": HALF}


def write_rivals(results: Path = RESULTS) -> str:
    """In Markdown: in each cell the PSNR, and the pairs that were read."""
    reports = [Report.read(results / place / "results.json") for place in COLUMNS.values()]
    cells: dict[str, dict[int, str]] = {}
    for column, report in enumerate(reports):
        for one in report.variants:
            if one.name in LEFT_OUT:
                continue
            cells.setdefault({**NAMES, **HALVED}.get(one.name, one.name), {})[column] = _tell(one)
    rows = ([name, *(own.get(n, "") for n in range(len(reports)))] for name, own in cells.items())
    return markdown.write_table(["dB, pairs", *COLUMNS], rows)


def _tell(one: VariantReport) -> str:
    return f"{intervals.mean(one.decibels)}, {one.pairs:.0%}".replace("%", " %")
