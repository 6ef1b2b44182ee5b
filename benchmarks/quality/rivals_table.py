"""Our nodes beside other ways to make attention cheaper: one table of both small transformers."""

from __future__ import annotations

from pathlib import Path

from .. import intervals, markdown
from .places import RESULTS
from .report import Report, VariantReport

COLUMNS = {
    "Flux, 8 steps": "flux/euler-simple-8-cfg1",
    "Flux for 4 steps": "flux-4-steps/euler-simple-4-cfg1",
    "Wan, 8 steps": "wan/euler-simple-8-cfg1",
    "Wan, 4 steps": "wan/euler-simple-4-cfg1",
}
HALF = "half of the steps"
HALVED = {"unpatched, 4 steps": HALF, "unpatched, 2 steps": HALF}


def write_rivals(results: Path = RESULTS) -> str:
    """In Markdown: in each cell the PSNR, and the pairs that were read."""
    reports = [Report.read(results / place / "results.json") for place in COLUMNS.values()]
    cells: dict[str, dict[int, str]] = {}
    for column, report in enumerate(reports):
        for one in report.variants:
            if one.kind != "yardstick" or one.name in HALVED:
                cells.setdefault(HALVED.get(one.name, one.name), {})[column] = _tell(one)
    rows = ([name, *(own.get(n, "") for n in range(len(reports)))] for name, own in cells.items())
    return markdown.write_table(["dB, pairs", *COLUMNS], rows)


def _tell(one: VariantReport) -> str:
    return f"{intervals.mean(one.decibels)}, {one.pairs:.0%}".replace("%", " %")
