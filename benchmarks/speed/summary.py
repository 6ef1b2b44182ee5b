"""From raw seconds to ratios: medians over rounds of what was measured in the same round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression, median

from .results import Case, Measured, Planning


@dataclass(frozen=True)
class Ratio:
    """Median and range over the rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def between(cls, upper: Sequence[float], lower: Sequence[float]) -> Ratio | None:
        """Of ``upper`` to ``lower``, round by round; None where no round has both."""
        ratios = [one / other for one, other in zip(upper, lower, strict=False)]
        return cls(median(ratios), min(ratios), max(ratios)) if ratios else None


@dataclass(frozen=True)
class Row:
    """One variant beside plain and beside the limit of its setting.

    hooks: time in attention patches as a share of the plain call. peak: memory, as a share of
    plain's.
    """

    measured: Measured
    seconds: float
    speedup: Ratio
    of_limit: Ratio | None
    hooks: float | None
    peak: float | None


def compare(case: Case) -> list[Row]:
    """Variants that have been measured, in the order of the case."""
    plain = next(one for one in case.measured if one.kind == "plain")
    limits = {one.setting: one for one in case.measured if one.kind == "limit"}
    found: list[Row] = []
    for one in case.measured:
        speedup = Ratio.between(plain.seconds, one.seconds)
        if speedup is None:
            continue
        limit = limits.get(one.setting) if one.kind in ("ours", "peer") else None
        found.append(
            Row(
                one,
                median(one.seconds),
                speedup,
                Ratio.between(limit.seconds, one.seconds) if limit else None,
                median(one.hook_seconds) / median(plain.seconds) if one.hook_seconds else None,
                one.peak_bytes / plain.peak_bytes if one.peak_bytes and plain.peak_bytes else None,
            )
        )
    return found


def slope(planning: Sequence[Planning], method: str, least_tokens: int = 4096) -> float | None:
    """Exponent of the method's time against tokens: 1 is linear, 2 quadratic.

    The line of least squares through log(time) against log(tokens), from ``least_tokens`` on,
    where fixed costs no longer show. None with fewer than two sizes.
    """
    points = [
        (math.log(one.tokens), math.log(median(one.seconds[method])))
        for one in planning
        if one.tokens >= least_tokens and one.seconds.get(method)
    ]
    if len(points) < 2:
        return None
    return linear_regression(*zip(*points, strict=True)).slope


def growth(planning: Sequence[Planning], method: str, least_tokens: int = 4096) -> float | None:
    """Time per token at the most tokens over that at ``least_tokens``; 1 is linear."""
    measured = [one for one in planning if one.seconds.get(method)]
    first = next((one for one in measured if one.tokens >= least_tokens), None)
    if first is None or measured[-1].tokens == first.tokens:
        return None
    last = measured[-1]
    per_token = median(last.seconds[method]) / last.tokens
    return per_token / (median(first.seconds[method]) / first.tokens)
