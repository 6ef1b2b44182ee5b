"""From raw seconds to ratios: medians over rounds of what was measured in the same round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from .results import Case, Measured


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
    """One variant beside the unpatched model and beside the limit of its setting. peak: of memory,
    as a share of the unpatched model's.
    """

    measured: Measured
    seconds: float
    speedup: Ratio
    of_limit: Ratio | None
    peak: float | None


def compare(case: Case) -> list[Row]:
    """Variants that have been measured, in the order of the case."""
    unpatched = next(one for one in case.measured if one.kind == "unpatched")
    limits = {one.setting: one for one in case.measured if one.kind == "limit"}
    found: list[Row] = []
    for one in case.measured:
        speedup = Ratio.between(unpatched.seconds, one.seconds)
        if speedup is None:
            continue
        limit = limits.get(one.setting) if one.kind in ("ours", "peer") else None
        found.append(
            Row(
                one,
                median(one.seconds),
                speedup,
                Ratio.between(limit.seconds, one.seconds) if limit else None,
                one.peak_bytes / unpatched.peak_bytes
                if one.peak_bytes and unpatched.peak_bytes
                else None,
            )
        )
    return found
