"""What is kept of a training for good, beside its weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .recipe import Recipe, Stage


@dataclass(frozen=True)
class PartLog:
    """Of one part of a training. losses: one a step."""

    recipe: Recipe
    seconds: int
    losses: list[float]


def write(place: Path, parts: Sequence[PartLog]) -> None:
    """As JSON."""
    place.write_text(json.dumps([asdict(part) for part in parts]) + "\n", encoding="utf-8")


def read(place: Path) -> list[PartLog]:
    """What ``write`` wrote."""
    parts = json.loads(place.read_text(encoding="utf-8"))
    return [
        PartLog(_build_recipe(**part["recipe"]), part["seconds"], part["losses"]) for part in parts
    ]


def _build_recipe(stages: list[dict[str, int]], **others: Any) -> Recipe:
    return Recipe(tuple(Stage(**stage) for stage in stages), **others)
