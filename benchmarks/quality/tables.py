"""The measurements as one table."""

from __future__ import annotations

from statistics import fmean

from rich.table import Table

from .report import Report, VariantReport

COLUMNS = (
    "pictures",
    "speed-up",
    "on SD 1.5",
    "PSNR",
    "mean sq. error",
    "SSIM",
    "features",
    "KID",
    "step error",
)


def build_table(report: Report) -> Table:
    """Finished pictures first, best PSNR first; then those with predictions alone."""
    found = Table(title="Against the plain model", caption=_caption(report))
    found.add_column("variant")
    for heading in COLUMNS:
        found.add_column(heading, justify="right")
    for one in sorted(report.variants, key=_order):
        found.add_row(one.name + (" *" if one.pictures_of else ""), *_figures(one))
    return found


def _order(one: VariantReport) -> tuple[float, float]:
    return (-(one.psnr or 0.0), one.prediction_error or float("inf"))


def _figures(one: VariantReport) -> tuple[str, ...]:
    return (
        str(len(one.squared_error) or ""),
        _text(one.speedup, ".2f", "x"),
        _text(one.published, ".2f", "x"),
        _text(one.psnr, ".1f", " dB"),
        _text(one.mean_squared_error, ".2e"),
        _text(fmean(one.ssim) if one.ssim else None, ".3f"),
        _text(fmean(one.features) if one.features else None, ".4f"),
        _text(one.kernel_distance, ".3f"),
        _text(one.prediction_error, ".2e"),
    )


def _text(value: float | None, how: str, unit: str = "") -> str:
    return "" if value is None else f"{value:{how}}{unit}"


def _caption(report: Report) -> str:
    lines = [f"{name}: {value}" for name, value in report.settings.items()]
    if report.floor is not None:
        lines.append(f"plain against itself in single precision: {report.floor:.1f} dB")
    if report.plain_kernel_distance is not None:
        lines.append(f"KID of plain's own pictures: {report.plain_kernel_distance:.3f}")
    lines.append("* these pictures were not made: every prediction equals that of a variant above")
    return "\n".join(lines)
