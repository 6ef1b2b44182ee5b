"""The speed-up that two rounds give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, median

from .runs import Comparison, TimedRun


@dataclass(frozen=True)
class Speed:
    """Seconds of a step, and how many times as fast ``patched`` is.

    Args:
        plain: the mean of the rounds.
        patched: the mean of the rounds.
        lowest: speed-up of the round where it is lowest.
        highest: speed-up of the round where it is highest.
    """

    plain: float
    patched: float
    lowest: float
    highest: float

    @property
    def speedup(self) -> float:
        """Of both rounds together; it never lies outside ``lowest`` to ``highest``."""
        return self.plain / self.patched


def is_timed(comparison: Comparison) -> bool:
    """The first step of a run is left out, so a run of one step has no time."""
    runs = (*comparison.plain.rounds, *comparison.patched.rounds)
    return all(run.seconds for run in runs)


def measure_mean_step(comparison: Comparison) -> Speed:
    """What a whole run gains: some nodes act in a part of the steps only."""
    return _measure(comparison, lambda run: fmean(run.seconds))


def measure_median_step(comparison: Comparison) -> Speed:
    """What one step gains, whatever else the machine did in single steps."""
    return _measure(comparison, lambda run: median(run.seconds))


def _measure(comparison: Comparison, of: Callable[[TimedRun], float]) -> Speed:
    plain = [of(run) for run in comparison.plain.rounds]
    patched = [of(run) for run in comparison.patched.rounds]
    speedups = [theirs / ours for theirs, ours in zip(plain, patched, strict=True)]
    return Speed(fmean(plain), fmean(patched), min(speedups), max(speedups))
