"""Which thresholds make EasyCache leave a wanted share of the model's calls."""

from __future__ import annotations

from bisect import bisect_left
from functools import cache

from comfy.model_patcher import ModelPatcher

from . import sampling, yardsticks
from .effort import EffortWatch
from .regimes import Regime
from .sampling import Batch

LADDER = (0, *sorted({round(1.15**step) for step in range(41)}))
"""Thresholds to choose from: hundredths, as the node's widget counts, up to its 3 or nearly. Its
default is 20."""


def find(model: ModelPatcher, batch: Batch, regime: Regime) -> dict[str, float]:
    """For each of ``yardsticks.CACHED``, by name: the lowest threshold that comes nearest to its
    share of plain's calls on ``batch``.

    Those that no threshold tells apart are left out, which happens where steps are few.
    """
    found: dict[str, float] = {}
    for name, before in yardsticks.CACHED.items():
        for share, threshold in _find(before(model), batch, regime).items():
            found[yardsticks.name_cache(share, name)] = threshold
    return found


def _find(model: ModelPatcher, batch: Batch, regime: Regime) -> dict[int, float]:
    """By share, in per cent."""

    @cache
    def count(rung: int) -> int:
        """Rows that are left."""
        watch = EffortWatch()
        patched = watch.attach(yardsticks.cache(LADDER[rung] / 100)(model))
        sampling.sample(patched, batch, regime)
        return watch.effort.rows

    def find_first(rows: float) -> int:
        """The lowest rung that leaves so many rows or fewer; the last where none does."""
        return bisect_left(range(len(LADDER) - 1), -rows, key=lambda rung: -count(rung))

    found: dict[int, tuple[int, float]] = {}
    for share in yardsticks.SHARES:
        wanted = count(0) * share / 100
        first = find_first(wanted)
        near = [count(rung) for rung in (max(first - 1, 0), first)]
        rows = min(near, key=lambda each: abs(each - wanted))
        if rows < count(0):
            found.setdefault(rows, (share, LADDER[find_first(rows)] / 100))
    return dict(found.values())
