"""Ratios are of the same round."""

from __future__ import annotations

import io

from rich.console import Console

from benchmarks.speed import summary, tables
from benchmarks.speed.results import Case, Measured


def case(unpatched: list[float], limit: list[float], ours: list[float]) -> Case:
    return Case(
        "unet", "SD 1.5", 512, 512, 1, "float32",
        measured=[
            Measured("unpatched", "unpatched", seconds=unpatched, peak_bytes=100),
            Measured("limit", "limit", "merge", seconds=limit, peak_bytes=50),
            Measured("ours", "ours", "merge", seconds=ours, peak_bytes=80),
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
    assert row.peak == 0.8


def test_a_loss_is_called_slower() -> None:
    losing = case([1.0] * 3, [0.9] * 3, [1.1, 1.2, 1.3])
    line = next(line for line in printed(losing).splitlines() if "ours" in line)
    assert "0.83x (0.77-0.91), slower" in line


def test_a_failure_is_shown_and_not_compared() -> None:
    failing = case([1.0] * 3, [0.9] * 3, [])
    failing.measured[2].failed = "out of memory"
    assert [row.measured.name for row in summary.compare(failing)] == ["unpatched", "limit"]
    assert "ours failed: out of memory" in printed(failing)
