"""Which combinations are tried."""

from __future__ import annotations

from dataclasses import dataclass

from support.modes import MODES, Mode

from .kinds import KINDS, Kind
from .other import Limit, Order, Other
from .others import OTHERS


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
    """One mode of each pair that is not slow, in turns over the pairs, as are the orders."""
    cells = []
    pairs = [(kind, other) for kind, other in list_pairs() if not other.slow]
    for number, (kind, other) in enumerate(pairs):
        turn, place = divmod(number, len(MODES))
        cells.append(Cell(kind, other, MODES[place], other.orders[turn % len(other.orders)]))
    return cells


def list_pairs() -> list[tuple[Kind, Other]]:
    return [(kind, other) for kind in KINDS for other in OTHERS if kind.name in other.kinds]
