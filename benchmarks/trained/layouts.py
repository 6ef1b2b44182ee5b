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
            # One of the first HELD_OUT_IN grounds is held out for every combination of the others.
            return Layouts(first, second, relation, -key % HELD_OUT_IN)
        ground = torch.where((key + ground) % HELD_OUT_IN == 0, ground + 1, ground)
        return Layouts(first, second, relation, ground % len(GROUNDS))

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
