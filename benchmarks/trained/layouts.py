"""What scenes show, as numbers that captions and pictures are made from. Drawn on the device."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Generator, Tensor

RELATIONS = ("", "left of", "right of", "above", "below")
MOTIONS = ("", "moving left", "moving right", "moving up", "moving down")
STEPS = torch.tensor([[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]])
"""Where the first subject is seen from the second, or where it moves: (x, y) for each of the
above."""
COLOURS = {
    "white": (240, 240, 240),
    "gray": (128, 128, 132),
    "black": (24, 24, 28),
    "red": (205, 60, 60),
    "yellow": (240, 210, 80),
    "green": (70, 160, 90),
    "blue": (70, 110, 210),
    "purple": (140, 90, 180),
}
SURFACES = ("bricks", "grass", "gravel")
"""Photographed grounds."""
GROUNDS = (
    *(f"on a {name} background" for name in COLOURS),
    *(f"on a {name} gradient" for name in COLOURS),
    *(f"on {name}" for name in SURFACES),
    "on a blurred background",
)
HELD_OUT_IN = 16
"""One of so many combinations is kept from training."""
HELD_OUT_SEED = 1
DRAWN = 4096
"""So many combinations are drawn, and those that came before are left out."""


@dataclass(frozen=True)
class Layouts:
    """first, second: (B,) subjects; the second is -1 where there is none. relation: (B,) in
    ``RELATIONS`` or ``MOTIONS``. ground: (B,) in ``GROUNDS``.
    """

    first: Tensor
    second: Tensor
    relation: Tensor
    ground: Tensor

    @staticmethod
    def draw(
        count: int, subjects: int, generator: Generator, *, moving: bool, held_out: bool = False
    ) -> Layouts:
        """moving: one subject, on its way. held_out: combinations that training never sees."""

        def number(most: int) -> Tensor:
            return torch.randint(most, (count,), generator=generator, device=generator.device)

        relation = number(len(RELATIONS)) * (number(2) if not moving else 1)
        first, second = number(subjects), number(subjects)
        second = torch.where((relation == 0) | moving, -1, second)
        ground = number(len(GROUNDS))
        key = 5 * first + 3 * second + 7 * relation
        if held_out:
            # Every HELD_OUT_IN-th ground is held out for every combination of the others.
            ground = -key % HELD_OUT_IN
            later = ground + HELD_OUT_IN
            has_later = (later < len(GROUNDS)) & (number(2) > 0)
            return Layouts(first, second, relation, torch.where(has_later, later, ground))
        ground = torch.where((key + ground) % HELD_OUT_IN == 0, ground + 1, ground)
        return Layouts(first, second, relation, ground % len(GROUNDS))

    @staticmethod
    def draw_unseen(count: int, subjects: int, generator: Generator, *, moving: bool) -> Layouts:
        """Combinations that training never sees, each once.

        Raises RuntimeError where there are not so many.
        """
        drawn = Layouts.draw(DRAWN, subjects, generator, moving=moving, held_out=True)
        columns = [getattr(drawn, field.name) for field in fields(drawn)]
        first: dict[tuple[int, ...], int] = {}
        for number, row in enumerate(torch.stack(columns, 1).tolist()):
            first.setdefault(tuple(row), number)
        if len(first) < count:
            raise RuntimeError(f"there are {len(first)} combinations, expected {count} or more")
        chosen = list(first.values())[:count]
        return Layouts(*(column[chosen] for column in columns))

    @property
    def held_out(self) -> Tensor:
        """(B,) bool."""
        key = 5 * self.first + 3 * self.second + 7 * self.relation
        return (key + self.ground) % HELD_OUT_IN == 0

    def tell(self, names: list[str], moving: bool) -> list[str]:
        """The captions, for people. names: of the subjects."""
        words = MOTIONS if moving else RELATIONS
        rows = zip(*(getattr(self, field.name).tolist() for field in fields(self)), strict=True)
        told = [
            (names[first], words[relation], names[second] if second >= 0 else "", GROUNDS[ground])
            for first, second, relation, ground in rows
        ]
        return [" ".join(filter(None, pieces)) for pieces in told]


def list_held_out(count: int, names: list[str], moving: bool) -> list[str]:
    """Captions of pictures or clips that training never sees, as ``Layouts.draw_unseen``.

    names: of the subjects.
    """
    generator = Generator().manual_seed(HELD_OUT_SEED)
    return Layouts.draw_unseen(count, len(names), generator, moving=moving).tell(names, moving)
