"""Results as tables; losses are shown as losses."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table

from .results import Case, Results
from .summary import Ratio, Row, compare

TITLES = {
    "models": "Whole models",
    "unet": "Whole model calls",
    "graph": "Whole calls, replayed as CUDA graphs",
    "transformer": "Whole calls of transformers",
    "transformer attention": "Attention of transformers, nothing else",
    "rivals": "Attention of transformers, beside comfy-kitchen's kernels",
}
LEFT_OUT = "left out"
"""How the reason begins where a variant cannot be measured on this machine."""


def build_tables(results: Results) -> Group:
    """All that was measured, part by part."""
    parts: list[RenderableType] = [_machine(results)]
    for part in TITLES:
        parts += [case_table(case) for case in results.cases if case.part == part]
    return Group(*parts)


def _machine(results: Results) -> Table:
    table = Table(show_header=False, box=None)
    for name, value in results.machine.items():
        if value is not None:
            table.add_row(name, str(value))
    return table


def case_table(case: Case) -> Table:
    """Variants by setting.

    Speed-up is against the unpatched model in the same round: median (lowest-highest).
    """
    counted = max((len(one.seconds) for one in case.measured), default=0)
    title = f"{TITLES[case.part]}: {case.name}; {counted} round{'s' * (counted != 1)}"
    table = Table(title=title, caption=case.note or None, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("setting and variant", min_width=36)
    for name in ("seconds", "speed-up", "of limit", "memory", "queries x keys"):
        table.add_column(name, justify="right", no_wrap=True)
    by_setting = groupby(_with_failed(case), key=lambda pair: pair[0])
    for setting, members in by_setting:
        if setting:
            table.add_row(f"[bold]{setting}")
        for _, name, row in members:
            table.add_row(("  " if setting else "") + name, *_cells(row))
    return table


def _with_failed(case: Case) -> Iterable[tuple[str, str, Row | None]]:
    """(setting, variant, its row); no row where it failed. Same settings stand together."""
    measured = {id(row.measured): row for row in compare(case)}
    order: dict[str, int] = {}
    for one in case.measured:
        order.setdefault(one.setting or "", len(order))
    for one in sorted(case.measured, key=lambda one: order[one.setting or ""]):
        if one.failed:
            failed = one.failed if one.failed.startswith(LEFT_OUT) else f"failed: {one.failed}"
            yield one.setting or "", f"{one.name} [red]{failed}", None
        elif id(one) in measured:
            yield one.setting or "", one.name, measured[id(one)]


def _cells(row: Row | None) -> tuple[str, ...]:
    if row is None:
        return ()
    finest = row.measured.lengths[0][:2] if row.measured.lengths else ()
    is_unpatched = row.measured.kind == "unpatched"
    return (
        f"{row.seconds:.3g}",
        "1" if is_unpatched else _ratio(row.speedup),
        f"{row.of_limit.median:.1%}" if row.of_limit else "",
        "" if row.peak is None else _memory(row.peak),
        " x ".join(map(str, finest)),
    )


def _ratio(ratio: Ratio) -> str:
    text = f"{ratio.median:.2f}x ({ratio.low:.2f}-{ratio.high:.2f})"
    return f"[red]{text}, slower" if ratio.median < 0.995 else text


def _memory(share: float) -> str:
    return f"[red]{share:.0%}" if share > 1.005 else f"{share:.0%}"
