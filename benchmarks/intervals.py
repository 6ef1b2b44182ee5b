"""How sure a mean is: over pictures, or over rounds of a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

SURE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean and half of its 95 % interval, None where one value alone says nothing of it."""

    mean: float
    half: float | None

    def __str__(self) -> str:
        return f"{self.mean:.1f}" + ("" if self.half is None else f" ± {self.half:.1f}")


def mean(values: Sequence[float]) -> Interval:
    """By Student's t distribution, over at least one value."""
    count = len(values)
    if count < 2:
        return Interval(float(np.mean(values)), None)
    half = stats.t.ppf((1 + SURE) / 2, count - 1) * stats.sem(values)
    return Interval(float(np.mean(values)), float(half))


def paired(values: Sequence[float], others: Sequence[float]) -> Interval:
    """Of the difference, value by value, over as many as both have.

    Narrower than the two intervals tell: a picture that is hard is hard for both.
    """
    count = min(len(values), len(others))
    return mean(np.subtract(values[:count], others[:count]).tolist())
