"""``bench cost``: counts, estimates, prints and writes."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from ... import loading, machine
from ...markdown import replace_table, write_table
from . import cases, tables
from .costs import BreakEven, Cost, find_break_evens, find_cost
from .gpus import GPUS, LAUNCH_SECONDS

WIDTH = 136
"""Of the tables; a narrower terminal breaks their lines."""
SOURCES = ("torch", "comfyui", "commit", "date")
"""Of what ``machine.describe`` tells; counts do not depend on the machine."""


def run(out: Path, console: Console, *, quick: bool) -> None:
    """Writes ``cost.json`` and ``cost.md`` into ``out``. quick: few small shapes, for a test."""
    shapes = cases.QUICK_SHAPES if quick else cases.SHAPES
    families = cases.QUICK_FAMILIES if quick else cases.FAMILIES
    costs: list[Cost] = []
    break_evens: list[BreakEven] = []
    with Progress(console=console, transient=True) as progress:
        counts = sum(len(shape.settings) for shape in shapes)
        task = progress.add_task("", total=counts + len(families))
        for shape in shapes:
            for setting in shape.settings:
                progress.update(task, description=f"{shape.name}: {setting.name}")
                costs.append(find_cost(shape, setting))
                progress.advance(task)
        for family in families:
            progress.update(task, description=f"{family.name}: from which size on it pays")
            break_evens += find_break_evens(family)
            progress.advance(task)
    _write(out, costs, break_evens)
    _print(console, costs, break_evens)
    console.print(f"Numbers: {out / 'cost.json'}", soft_wrap=True)


def _write(out: Path, costs: list[Cost], break_evens: list[BreakEven]) -> None:
    told = machine.describe("cpu", loading.ROOT)
    whole = {
        "counted_with": {name: told[name] for name in SOURCES},
        "gpus": [asdict(gpu) for gpu in GPUS],
        "launch_seconds": LAUNCH_SECONDS,
        "costs": [asdict(each) for each in costs],
        "break_evens": [asdict(each) for each in break_evens],
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "cost.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    parts = (
        write_table(tables.COST_COLUMNS, tables.list_cost_rows(costs)),
        write_table(tables.BREAK_EVEN_COLUMNS, tables.list_break_even_rows(break_evens)),
    )
    (out / "cost.md").write_text("\n".join(parts), encoding="utf-8")


def update(document: Path, out: Path) -> None:
    """Put the tables that ``run`` wrote into ``out`` in place of those with the same columns."""
    text = document.read_text(encoding="utf-8")
    for table in (out / "cost.md").read_text(encoding="utf-8").split("\n\n"):
        text = replace_table(text, table)
    document.write_text(text, encoding="utf-8")


def _print(console: Console, costs: list[Cost], break_evens: list[BreakEven]) -> None:
    console.width = max(console.width, WIDTH)
    rows = tables.list_cost_rows(costs)
    console.print(tables.build_table(tables.TITLE, tables.COST_COLUMNS, rows))
    title = "Tokens from which on the whole block is estimated to be faster"
    rows = tables.list_break_even_rows(break_evens)
    console.print(tables.build_table(title, tables.BREAK_EVEN_COLUMNS, rows))
