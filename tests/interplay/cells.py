"""Which combinations are tried."""

from __future__ import annotations

from dataclasses import dataclass

from support.modes import MODES, Mode

from .kinds import KINDS, Kind
from .other import Limit, Order, Other
from .others import OTHERS

OUTSIDE = frozenset(
    {
        "Adaptive Projected Guidance",
        "CFGNorm",
        "CFGNorm before guidance",
        "CFGZeroStar",
        "Epsilon Scaling",
        "FreSca",
        "LazyCache",
        "ModelMergeFlux1",
        "ModelMergeSimple",
        "ModelMergeWAN2_1",
        "ModelSamplingAuraFlow",
        "ModelSamplingDiscrete",
        "ModelSamplingFlux",
        "ModelSamplingSD3",
        "ModelSubtract, ModelAdd",
        "Perp-Neg",
        "RescaleCFG",
        "Tangential Damping CFG",
        "VideoLinearCFGGuidance",
    }
)
"""These rows change a model's weights, its noise levels, when it is called or what becomes of its
output, and nothing that runs in it, where our nodes are. EasyCache and the Perp-Neg Guider stand
for those that call it more or less often."""


@dataclass(frozen=True)
class Cell:
    """One of our modes beside one other node, on one kind of model."""

    kind: Kind
    other: Other
    mode: Mode
    order: Order

    def __str__(self) -> str:
        return f"{self.kind}-{self.other}-{self.mode}-{self.order}"

    @property
    def limit(self) -> Limit | None:
        return self.other.find_limit(self.kind, self.mode, self.order)


def list_cells() -> list[Cell]:
    """All of them."""
    return [
        Cell(kind, other, mode, order)
        for kind, other in list_pairs()
        for mode in MODES
        for order in other.orders
    ]


def list_few_cells() -> list[Cell]:
    """One mode of each pair that is not slow; of a row outside the model, one pair alone."""
    cells: list[Cell] = []
    for number, row in enumerate(_list_rows()):
        cells += [row[number % len(row)]] if _is_outside(row) else row
    return cells


def list_fewest_cells() -> list[Cell]:
    """Of each row within the model, the one of the few in which the other node matters most.

    That is where it limits ours, else where it has an effect; if on several kinds, in turns.
    """
    cells: list[Cell] = []
    for number, row in enumerate(_list_rows()):
        if not _is_outside(row):
            most = max(map(_count_effects, row))
            best = [cell for cell in row if _count_effects(cell) == most]
            cells.append(best[number % len(best)])
    return cells


def _list_rows() -> list[list[Cell]]:
    """One cell of each pair, by the name of the row. Modes and orders take turns over the pairs."""
    rows: dict[str, list[Cell]] = {}
    pairs = [(kind, other) for kind, other in list_pairs() if not other.slow]
    for number, (kind, other) in enumerate(pairs):
        turn, place = divmod(number, len(MODES))
        cell = Cell(kind, other, MODES[place], other.orders[turn % len(other.orders)])
        rows.setdefault(other.name, []).append(cell)
    return [*rows.values()]


def _is_outside(row: list[Cell]) -> bool:
    return row[0].other.name in OUTSIDE


def _count_effects(cell: Cell) -> int:
    """How much a combination says: nothing where it is refused, most where ours is limited."""
    if cell.limit:
        return 0 if cell.limit.outcome == "refused" else 3
    return 2 if cell.other.changes_picture else 1


def list_pairs() -> list[tuple[Kind, Other]]:
    return [(kind, other) for kind in KINDS for other in OTHERS if kind.name in other.kinds]
