"""Which thresholds make EasyCache leave a wanted share of the model's calls."""

from __future__ import annotations

from bisect import bisect_left
from functools import cache

from comfy.model_patcher import ModelPatcher

from . import sampling, yardsticks
from .effort import EffortWatch
from .regimes import Regime
from .sampling import Batch

LADDER = (0, *sorted({round(1.05**step) for step in range(118)}))
"""These are the thresholds to choose from: hundredths, as the node's widget counts, in steps of 5 %
where these are more than one, up to its 3 or nearly. Its default is 20."""


def find(model: ModelPatcher, batch: Batch, regime: Regime) -> dict[str, float]:
    """For each of ``yardsticks.CACHED`` and share: the threshold that comes nearest to that share
    of the unpatched model's calls on ``batch``.

    Those that no threshold tells apart are left out, which happens where steps are few.
    """
    return {
        yardsticks.name_share(share, name): threshold
        for name, before in yardsticks.CACHED.items()
        for share, threshold in _find(before(model), batch, regime)
    }


def _find(model: ModelPatcher, batch: Batch, regime: Regime) -> list[tuple[int, float]]:
    """(share in per cent, threshold)"""

    @cache
    def count(rung: int) -> int:
        """Rows that are left."""
        watch = EffortWatch()
        patched = watch.attach(yardsticks.cache(LADDER[rung] / 100)(model))
        sampling.sample(patched, batch, regime)
        return watch.effort.rows

    found: dict[int, tuple[int, float]] = {}
    for share in yardsticks.SHARES:
        wanted = count(0) * share / 100
        # The lowest rung that leaves so many rows or fewer; the last where none does.
        first = bisect_left(range(len(LADDER) - 1), -wanted, key=lambda rung: -count(rung))
        nearest = min((max(first - 1, 0), first), key=lambda rung: abs(count(rung) - wanted))
        if count(nearest) < count(0):
            found.setdefault(count(nearest), (share, LADDER[nearest] / 100))
    return list(found.values())
