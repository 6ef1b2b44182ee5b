"""Costs as tables, on the terminal and for the documents; losses are shown as losses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.table import Table

from .costs import BreakEven, Cost
from .counting import Place
from .gpus import GPUS

TITLE = "One attention call, counted; its times are estimated from data sheets, never measured"
COST_COLUMNS = (
    "",
    "kernels\naround it",
    "MB they\nmove",
    *(f"{what},\n{gpu.name}" for gpu in GPUS for what in ("attention", "block")),
    "memory,\nattention",
    "memory,\nblock",
)
BREAK_EVEN_COLUMNS = ("", "", *(gpu.name for gpu in GPUS))
ATTENTION: tuple[Place, ...] = ("ours", "attention")
Rows = list[tuple[str, ...]]


def list_cost_rows(costs: Iterable[Cost]) -> Rows:
    """For each shape a row with its name and plain's times, then one for each setting."""
    rows: Rows = []
    for shape, members in groupby(costs, key=lambda each: each.shape):
        plain, *others = members
        times = [cell for gpu in GPUS for cell in (_tell_milliseconds(plain, gpu.name), "")]
        rows.append((f"**{shape}**, {plain.tokens:,} tokens", "", "", *times, "", ""))
        rows += [_list_cells(cost, plain) for cost in others]
    return rows


def _list_cells(cost: Cost, plain: Cost) -> tuple[str, ...]:
    ours, cells = cost.parts["ours"], []
    for gpu in (each.name for each in GPUS):
        attention = plain.sum_seconds(gpu, ATTENTION) / cost.sum_seconds(gpu, ATTENTION)
        block = plain.sum_seconds(gpu) / cost.sum_seconds(gpu)
        hidden = plain.sum_busy(gpu) / cost.sum_busy(gpu)
        cells += [f"{_tell_milliseconds(cost, gpu)}, {attention:.2f}x"]
        cells += [f"{block:.2f}x ({hidden:.2f}x)"]
    cells += [_tell_share(cost.attention_peak_bytes, plain.attention_peak_bytes)]
    cells += [_tell_share(cost.peak_bytes, plain.peak_bytes)]
    return (cost.setting, f"{ours.launches:,}", f"{ours.bytes / 1e6:,.0f}", *cells)


def _tell_share(some: int | None, whole: int | None) -> str:
    return f"{some / whole:.2f}" if some and whole else ""


def _tell_milliseconds(cost: Cost, gpu: str) -> str:
    return f"{1000 * cost.sum_seconds(gpu, ATTENTION):.3g} ms"


def list_break_even_rows(found: Iterable[BreakEven]) -> Rows:
    """The number of tokens from which on each setting pays, a column for each GPU."""
    by_setting = groupby(found, key=lambda each: (each.family, each.setting))
    return [(*names, *map(_tell_tokens, members)) for names, members in by_setting]


def _tell_tokens(found: BreakEven) -> str:
    first, hidden = (
        "none" if tokens is None else f"{tokens:,}"
        for tokens in (found.tokens, found.tokens_if_hidden)
    )
    tried = f", tried to {found.most_tokens:,}" if "none" in (first, hidden) else ""
    return f"{first} ({hidden}){tried}"


def build_table(title: str, columns: Sequence[str], rows: Rows) -> Table:
    """For the terminal; what is slower than plain is red."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(_mark(cell.replace("**", "")) for cell in row))
    return table


def _mark(cell: str) -> str:
    speed_up = re.search(r"([\d.]+)x", cell)
    is_loss = speed_up is not None and float(speed_up[1]) < 1
    return f"[red]{cell}" if is_loss or cell.startswith("none") else cell
