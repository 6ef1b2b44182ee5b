"""The section "Other nodes" of docs/compatibility.md."""

from __future__ import annotations

from support.modes import MODES

from .cells import Cell, list_cells
from .kinds import KINDS, Kind
from .other import Other
from .others import OTHERS

HEADING = "## Other nodes"
INTRODUCTION = f"""\
Each row is another node of ComfyUI, or a situation that a workflow brings. Each cell was tried on a
small model of the kind with random weights, with our nodes before and after the other in the graph,
in {len(MODES)} modes: {", ".join(mode.name for mode in MODES)}.
On transformers none of these is the default of our nodes: "local window" has one of 8, the others
have none. All of them reduce early steps, too. What the defaults do beside attention of other nodes
stands above.

- **works**: tokens are reduced, the other node has its effect, and our nodes change the picture at
  most three times as much as without the other node (six times in a few rows).
- **works in part**: the same, but some of what our nodes do is left out, and the node says why.
- **left alone**: no layer is reduced, the picture is the one without our nodes, and the node says
  why.
- **refused**: an error says why.
- **–**: not tried on this kind of model.

The unpatched model gives the same picture, to the bit, before and after each cell. Where no note
says otherwise, both orders of the nodes give the same picture, to the bit.
`python -m devtools test tests/interplay --long --write-compatibility` tries all
{len(list_cells()):,} cells and writes this section.
`python -m devtools test --all` tries one mode of each pair but the slowest, of a row that changes
nothing within the model one pair alone; without `--all`, one pair of each of the other rows.
"""


def write_section() -> str:
    """What the section says where every cell is as its row says."""
    notes: list[str] = []
    lines = [
        HEADING,
        "",
        INTRODUCTION,
        f"| | {' | '.join(kind.name for kind in KINDS)} |",
        f"| --- |{' --- |' * len(KINDS)}",
    ]
    for name in dict.fromkeys(other.name for other in OTHERS):
        rows = [other for other in OTHERS if other.name == name]
        cells = " | ".join(_write_cell(kind, rows, notes) for kind in KINDS)
        lines.append(f"| {name} | {cells} |")
    lines += ["", *(f"{number}. {note}" for number, note in enumerate(notes, 1))]
    return "\n".join(lines).rstrip() + "\n"


def _write_cell(kind: Kind, rows: list[Other], notes: list[str]) -> str:
    for other in rows:
        if kind.name in other.kinds:
            return _describe(kind, other, notes)
        if kind.name in other.not_tried:
            return _refer("not tried", f"Not tried: {other.not_tried[kind.name]}.", notes)
    return "–"


def _describe(kind: Kind, other: Other, notes: list[str]) -> str:
    cells = [Cell(kind, other, mode, order) for mode in MODES for order in other.orders]
    limits = dict.fromkeys(cell.limit for cell in cells)
    text = ""
    for limit in limits:
        if limit is None:
            continue
        which = [cell for cell in cells if cell.limit == limit]
        modes = list(dict.fromkeys(cell.mode.name for cell in which))
        orders = list(dict.fromkeys(cell.order for cell in which))
        where = "" if len(modes) == len(MODES) else f" ({', '.join(modes)})"
        where += "" if len(orders) == len(other.orders) else f" (our nodes {orders[0]} it)"
        note = f"{limit.outcome.capitalize()}{where}: {limit.why}."
        text = _refer(text or (limit.outcome if None not in limits else "works"), note, notes)
    if not other.same_in_both_orders:
        note = "The two orders give different pictures."
        text = _refer(text or "works", note, notes)
    if other.note:
        text = _refer(text or "works", f"{other.note}.", notes)
    return text or "works"


def _refer(text: str, note: str, notes: list[str]) -> str:
    """``text`` with the number of the note, which is added where it is new."""
    if note not in notes:
        notes.append(note)
    return f"{text} ({notes.index(note) + 1})"
