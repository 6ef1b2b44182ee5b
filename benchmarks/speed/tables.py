"""Results as tables; losses are shown as losses."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from statistics import median

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table

from .published import PUBLISHED, STEPS
from .results import Case, Correction, Measured, Planning, Results, Similarity
from .summary import Ratio, Row, compare, growth, slope

TITLES = {
    "unet": "Whole model calls",
    "steps": "Steps in a row",
    "graph": "Whole calls, replayed as CUDA graphs",
    "attention": "Self-attention of one block, its projections included",
    "transformer": "Whole calls of transformers",
    "transformer attention": "Attention of transformers, nothing else",
    "compile": "torch.compile",
    "whole": "Where every layer is left whole",
    "published": "The published table of ToMe for Stable Diffusion",
}
"""Of the parts whose cases have a table of their own."""


def build_tables(results: Results) -> Group:
    """All that was measured, part by part."""
    parts: list[RenderableType] = [_machine(results)]
    for part in TITLES:
        parts += [case_table(case) for case in results.cases if case.part == part]
    parts += [peers_table(case) for case in results.cases if case.part == "peers"]
    if results.planning:
        parts.append(planning_table(results.planning))
    if results.similarity:
        parts.append(similarity_table(results.similarity))
    if results.correction:
        parts.append(correction_table(results.correction))
    published = [case for case in results.cases if case.part == "published"]
    if published:
        parts.append(published_table(published))
    return Group(*parts)


def _machine(results: Results) -> Table:
    table = Table(show_header=False, box=None)
    for name, value in results.machine.items():
        if value is not None:
            table.add_row(name, str(value))
    return table


def case_table(case: Case) -> Table:
    """Variants by setting; speed-up is against plain in the same round: median (lowest-highest)."""
    counted = max((len(one.seconds) for one in case.measured), default=0)
    title = f"{TITLES[case.part]}: {case.name}; {counted} round{'s' * (counted != 1)}"
    table = Table(title=title, caption=case.note or None, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("setting and variant", min_width=36)
    for name in ("s/call", "speed-up", "of limit", "in hooks", "memory", "queries x keys"):
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
            yield one.setting or "", f"{one.name} [red]failed: {one.failed}", None
        elif id(one) in measured:
            yield one.setting or "", one.name, measured[id(one)]


def _cells(row: Row | None) -> tuple[str, ...]:
    if row is None:
        return ()
    finest = row.measured.lengths[0][:2] if row.measured.lengths else ()
    is_plain = row.measured.kind == "plain"
    return (
        f"{row.seconds:.3g}",
        "1" if is_plain else _ratio(row.speedup),
        f"{row.of_limit.median:.1%}" if row.of_limit else "",
        "" if row.hooks is None or is_plain else f"{row.hooks:.1%}",
        "" if row.peak is None else _memory(row.peak),
        " x ".join(map(str, finest)),
    )


def _ratio(ratio: Ratio) -> str:
    text = f"{ratio.median:.2f}x ({ratio.low:.2f}-{ratio.high:.2f})"
    return f"[red]{text}, slower" if ratio.median < 0.995 else text


def _memory(share: float) -> str:
    return f"[red]{share:.0%}" if share > 1.005 else f"{share:.0%}"


def peers_table(case: Case) -> Table:
    """How many times as long the limit and the peers take as ours, with 95 % intervals."""
    # Here: a GPU machine need not have scipy.
    from .certainty import compare_with_ours

    table = Table(
        title=f"Beside ours, until sure: {case.name}",
        caption=f"{case.note}; time of the other / time of ours, mean and 95 % interval: above 1, "
        "ours is faster",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    for name in ("setting", "ours", "other", "other / ours", "95 %", "rounds"):
        table.add_column(name)
    for one in compare_with_ours(case):
        interval = f"{one.low:.3f} to {one.high:.3f}"
        names = (one.ours.setting or "", one.ours.name, one.other.name)
        table.add_row(*names, f"{one.mean:.3f}", interval, str(one.rounds))
    return table


def planning_table(planning: list[Planning]) -> Table:
    """Microseconds per token and method, with the exponent from 4096 tokens on."""
    methods = list(dict.fromkeys(name for one in planning for name in one.seconds))
    table = Table(
        title=f"Planning alone: microseconds per token ({planning[0].channels} channels)",
        caption="slope: exponent of time against tokens, from 4096 on; 1 is linear\n"
        "growth: time per token at the most tokens over that at 4096",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    table.add_column("method", no_wrap=True)
    for one in planning:
        table.add_column(f"{one.tokens:,}", justify="right")
    table.add_column("slope", justify="right")
    table.add_column("growth", justify="right")
    for method in methods:
        per_token = [
            f"{1e6 * median(one.seconds[method]) / one.tokens:.2f}"
            if method in one.seconds
            else "left out"
            for one in planning
        ]
        exponent, grown = slope(planning, method), growth(planning, method)
        table.add_row(
            method,
            *per_token,
            "" if exponent is None else f"{exponent:.2f}",
            "" if grown is None else f"{grown:.1f}x",
        )
    return table


def similarity_table(similarity: list[Similarity]) -> Table:
    """What local matching keeps of the similarity that comparing with all reaches."""
    table = Table(
        title="Mean cosine similarity of merged tokens on photographs",
        caption="kept: local over global; worst: of any photograph",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    for name in ("noise", "ratio", "tokens", "local", "global", "kept", "worst"):
        table.add_column(name, justify="right")
    for one in similarity:
        numbers = (f"{one.local:.3f}", f"{one.everywhere:.3f}", f"{one.kept:.1%}")
        table.add_row(
            f"{one.noise:g}", f"{one.ratio:g}", f"{one.tokens:,}", *numbers, f"{one.worst:.1%}"
        )
    return table


def correction_table(correction: list[Correction]) -> Table:
    """Errors without -> with the correction, by sharpness; the smaller one is bold."""
    table = Table(
        title="Squared error of attention on fewer keys, in % of whole attention's output squared",
        caption="without -> with the log of the number of tokens that a key stands for",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    table.add_column("scores times", no_wrap=True)
    sharpness = list(dict.fromkeys(one.sharpness for one in correction))
    for factor in sharpness:
        table.add_column(f"{factor:g}", justify="right", no_wrap=True)
    for (prompt_tokens, noise), members in groupby(
        correction, key=lambda one: (one.prompt_tokens, one.noise)
    ):
        found = {(one.reduction, one.sharpness): one for one in members}
        beside = f"{prompt_tokens} prompt tokens beside" if prompt_tokens else "picture alone"
        table.add_row(f"[bold]{beside}, noise {noise:g}")
        sharing = {one.sharpness: one.sharing for one in found.values()}
        table.add_row("  keys that share the weight", *(f"{sharing[s]:.0f}" for s in sharpness))
        for name in dict.fromkeys(reduction for reduction, _ in found):
            table.add_row(f"  {name}", *(_errors(found[name, s]) for s in sharpness))
    return table


def _errors(one: Correction) -> str:
    without, corrected = f"{100 * one.without:.2f}", f"{100 * one.corrected:.2f}"
    if without == corrected:
        return f"{without} -> {corrected}"
    if one.corrected < one.without:
        return f"{without} -> [bold]{corrected}[/]"
    return f"[bold]{without}[/] -> {corrected}"


def published_table(cases: list[Case]) -> Table:
    """Seconds per image, with the published figures beside where there are some."""
    names = list(dict.fromkeys(_full_name(one) for case in cases for one in case.measured))
    table = Table(
        title=f"Seconds per image of {STEPS} steps, the UNet alone",
        caption="published: plain, ToMe, ToMe with xFormers on an A100; whole pipeline",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    table.add_column("")
    for case in cases:
        table.add_column(f"{case.width}, {case.rows // 2}", justify="right")
    for name in names:
        found = [{_full_name(one): one for one in case.measured}.get(name) for case in cases]
        seconds = [
            f"{STEPS * median(one.seconds) / (case.rows // 2):.3g}" if one and one.seconds else ""
            for case, one in zip(cases, found, strict=True)
        ]
        table.add_row(name, *seconds)
    figures = [PUBLISHED.get((case.width, case.rows // 2)) for case in cases]
    table.add_row("published", *(", ".join(map(str, one)) if one else "" for one in figures))
    return table


def _full_name(one: Measured) -> str:
    return f"{one.setting}: {one.name}" if one.setting else one.name
