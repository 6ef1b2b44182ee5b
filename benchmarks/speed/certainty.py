"""How sure a ratio of times is: ours beside the limit and the peers of the same setting."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from .. import intervals
from .results import Case, Measured

ENOUGH = 0.01
"""Half of the 95 % interval, as a share of the ratio, at which no more rounds are needed."""

LEAST_ROUNDS = 8


@dataclass(frozen=True)
class MeanRatio:
    """Time of ``other`` divided by that of ``ours``: above 1, ours is faster.

    More rounds narrow its interval, unlike the range of ``summary.Ratio``.

    mean: the geometric mean over the rounds. low, high: its 95 % interval, by Student's t of the
    ratios' logarithms. rounds: how many there were.
    """

    ours: Measured
    other: Measured
    mean: float
    low: float
    high: float
    rounds: int

    @property
    def is_sure(self) -> bool:
        return self.rounds >= LEAST_ROUNDS and self.high <= self.mean * (1 + ENOUGH)


def compare_with_ours(case: Case) -> list[MeanRatio]:
    """Each of ours with each limit and peer of its setting, after two rounds or more."""
    return [found for ours, other in _pair(case) if (found := _compare(ours, other)) is not None]


def is_sure(case: Case) -> bool:
    """Whether every ratio of the case is known well enough; false before it has any."""
    ratios = compare_with_ours(case)
    return bool(ratios) and all(ratio.is_sure for ratio in ratios)


def _pair(case: Case) -> Iterator[tuple[Measured, Measured]]:
    for ours in case.measured:
        if ours.kind == "ours":
            for other in case.measured:
                if other.setting == ours.setting and other.kind in ("limit", "peer"):
                    yield ours, other


def _compare(ours: Measured, other: Measured) -> MeanRatio | None:
    pairs = zip(other.seconds, ours.seconds, strict=False)
    logs = [math.log(seconds / own) for seconds, own in pairs]
    if len(logs) < 2:
        return None
    found = intervals.mean(logs)
    half = found.half or 0.0
    low, mean, high = (math.exp(found.mean + side) for side in (-half, 0.0, half))
    return MeanRatio(ours, other, mean, low, high, len(logs))
