"""The measurements as one table."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

from rich.table import Table

from .. import intervals
from .report import Report, VariantReport

WIDTH = 140
"""A narrower terminal breaks its lines, which is better than losing columns."""
NAME = 26
"""The names have at least so many columns; longer ones are broken."""


def _text(value: float | None, how: str) -> str:
    return "" if value is None else f"{value:{how}}"


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None


def _decibels(one: VariantReport) -> str:
    if one.squared_error and not any(one.squared_error):
        return "equal"
    return str(intervals.mean(one.decibels)) if one.squared_error else ""


Column = Callable[[VariantReport], str]
COLUMNS: dict[str, Column] = {
    "pictures": lambda one: str(len(one.squared_error) or ""),
    "pairs": lambda one: _text(one.pairs, ".0%"),
    "calls": lambda one: _text(one.calls, ".0%"),
    "PSNR, dB": _decibels,
    "ST-LPIPS": lambda one: _text(_mean(one.st_lpips), ".4f"),
    "flicker": lambda one: _text(_mean(one.flicker), ".2e"),
}


def build_table(report: Report, against: str | None = None) -> Table:
    """One row a variant, in the order of ``report``; columns that no variant fills are left out.

    against: the variant over which the gain is given, picture by picture.
    Raises RuntimeError where its pictures were not measured.
    """
    columns = dict(COLUMNS)
    if against is not None:
        columns[f"gains over {against}, dB"] = _gain(report, against)
    found = Table(title="Against the unpatched model", caption=_caption(report))
    found.add_column("variant", min_width=NAME)
    rows = [[column(one) for one in report.variants] for column in columns.values()]
    filled = [(name, texts) for name, texts in zip(columns, rows, strict=True) if any(texts)]
    for heading, _ in filled:
        found.add_column(heading, justify="right")
    for number, one in enumerate(report.variants):
        found.add_row(one.name, *(texts[number] for _, texts in filled))
    return found


def _gain(report: Report, against: str) -> Column:
    measured = [one for one in report.variants if one.squared_error]
    other = next((one for one in measured if one.name == against), None)
    if other is None:
        names = ", ".join(one.name for one in measured)
        raise RuntimeError(f"--against is {against!r}, expected one of {names}")

    def gain(one: VariantReport) -> str:
        if one is other or not one.squared_error:
            return ""
        return str(intervals.paired(one.decibels, other.decibels))

    return gain


def _caption(report: Report) -> str:
    lines = [f"{name}: {value}" for name, value in report.settings.items()]
    lines.append("PSNR and gains: mean over the pictures, and the 95 % interval of that mean")
    lines.append(
        "pairs: queries x keys of self-attention, calls: of the model; "
        "both in % of the unpatched model's"
    )
    if report.thresholds:
        lines.append("EasyCache: its threshold, and the share of calls that this was to leave")
    return "\n".join(lines)
