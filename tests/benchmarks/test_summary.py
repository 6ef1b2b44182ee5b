"""Ratios are of the same round; slopes are exponents."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from benchmarks.speed import summary, tables
from benchmarks.speed.results import Case, Measured, Planning


def case(plain: list[float], limit: list[float], ours: list[float]) -> Case:
    return Case(
        "unet", "SD 1.5", 512, 512, 1, "float32",
        measured=[
            Measured("plain", "plain", seconds=plain, peak_bytes=100),
            Measured("limit", "limit", "merge", seconds=limit, peak_bytes=50),
            Measured("ours", "ours", "merge", seconds=ours, hook_seconds=[0.2] * 3, peak_bytes=80),
        ],
    )  # fmt: skip


def printed(case: Case) -> str:
    console = Console(file=io.StringIO(), width=120)
    with console.capture() as capture:
        console.print(tables.case_table(case))
    return capture.get()


def test_ratios_compare_within_a_round() -> None:
    """The machine slowed down from round to round; the ratio did not."""
    row = summary.compare(case([2.0, 4.0, 8.0], [1.0, 2.0, 4.0], [1.25, 2.5, 5.0]))[2]
    assert (row.speedup.low, row.speedup.median, row.speedup.high) == (1.6, 1.6, 1.6)
    assert row.of_limit is not None and row.of_limit.median == 0.8
    assert row.hooks == 0.2 / 4.0
    assert row.peak == 0.8


def test_a_loss_is_called_slower() -> None:
    losing = case([1.0] * 3, [0.9] * 3, [1.1, 1.2, 1.3])
    line = next(line for line in printed(losing).splitlines() if "ours" in line)
    assert "0.83x (0.77-0.91), slower" in line


def test_a_failure_is_shown_and_not_compared() -> None:
    failing = case([1.0] * 3, [0.9] * 3, [])
    failing.measured[2].failed = "out of memory"
    assert [row.measured.name for row in summary.compare(failing)] == ["plain", "limit"]
    assert "ours failed: out of memory" in printed(failing)


@pytest.mark.parametrize("exponent", [1.0, 2.0])
def test_slope_and_growth_of_a_power_law(exponent: float) -> None:
    planning = [
        Planning(tokens, 8, "float32", {"method": [1e-6 * tokens**exponent]})
        for tokens in (1024, 4096, 16384, 65536)
    ]
    planning[0].seconds["method"] = [1.0]  # below the least tokens: must not matter
    assert summary.slope(planning, "method") == pytest.approx(exponent)
    assert summary.growth(planning, "method") == pytest.approx(16 ** (exponent - 1))


def test_one_size_has_no_slope() -> None:
    planning = [Planning(4096, 8, "float32", {"method": [1.0]})]
    assert summary.slope(planning, "method") is None
    assert summary.growth(planning, "method") is None
