"""Which thresholds make EasyCache leave a wanted share of the model's calls."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import cache, partial

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
        for share, threshold in choose(partial(_count_rows, before(model), batch, regime)).items()
    }


def _count_rows(model: ModelPatcher, batch: Batch, regime: Regime, threshold: float) -> int:
    """Those that are left."""
    watch = EffortWatch()
    sampling.sample(watch.attach(yardsticks.cache(threshold)(model)), batch, regime)
    return watch.effort.rows


def choose(count_rows: Callable[[float], int]) -> dict[int, float]:
    """Thresholds by share in per cent, each under the share that it comes nearest to, the higher of
    two that are as near.

    count_rows: that are left with a threshold; a higher one leaves no more.
    """

    @cache
    def count(rung: int) -> int:
        return count_rows(LADDER[rung] / 100)

    def miss(share: int, rung: int) -> int:
        """How far the rung is from the share, in hundredths of a row."""
        return abs(100 * count(rung) - share * count(0))

    def find_share(rung: int) -> int:
        return min(yardsticks.SHARES, key=lambda share: miss(share, rung))

    found = {}
    for share in yardsticks.SHARES:
        # The lowest rung that leaves so many rows or fewer; the last where none does.
        first = bisect_left(
            range(len(LADDER) - 1), -share * count(0), key=lambda rung: -100 * count(rung)
        )
        own = [
            rung
            for rung in (first - 1, first)
            if count(rung) < count(0) and find_share(rung) == share
        ]
        if own:
            found[share] = LADDER[min(own, key=partial(miss, share))] / 100
    return found
