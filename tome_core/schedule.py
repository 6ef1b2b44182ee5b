"""Which part of the denoising schedule a setting acts on."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .checks import check_number

EARLY = 0.2
"""This share of the schedule decides what a transformer's picture shows; an error there stays (how
much: docs/quality.md). ComfyUI's node for Sol-Attn (arXiv 2607.24027) computes it in full, too."""

ROUNDING = 1 + 1e-6
"""The noise levels of a schedule, in single precision, are as close to those of the model's map."""

LONG_STEP = 2.5
"""With 4, 8 and 20 steps, ComfyUI's "normal", "ddim_uniform", "kl_optimal" and "linear_quadratic"
have long steps, mostly the last one before the noise ends. Steps of its other schedules are at most
2.02 times as long as the one before ("beta")."""

UNEVEN = 0.1
"""The steps of an even schedule may differ by this share of their mean: models know a thousand
noise levels or more, and a schedule takes the nearest."""

SHORT_END = 0.005
"""An even schedule may leave this for its last step. ComfyUI's "normal" ends so."""


@dataclass(frozen=True)
class PercentRange:
    """The half-open part [start, end) of the schedule; 0.0 is its first step, 1.0 its end.

    Half-open, so that a range that ends at 0.5 and one that starts at 0.5 share no step.
    Raises ValueError naming the input, its value and what is accepted.
    """

    start: float = 0.0
    end: float = 1.0

    def __post_init__(self) -> None:
        check_number("start_percent", self.start, 0.0, 1.0)
        check_number("end_percent", self.end, 0.0, 1.0)
        if not self.start < self.end:
            raise ValueError(
                f"start_percent is {self.start}, expected less than end_percent, "
                f"which is {self.end}"
            )

    @property
    def is_whole(self) -> bool:
        """True where it holds every noise level."""
        return (self.start, self.end) == (0.0, 1.0)

    def overlaps(self, other: PercentRange) -> bool:
        """True where some part of the schedule lies in both ranges."""
        return self.start < other.end and other.start < self.end

    def find_sigmas(self, percent_to_sigma: Callable[[float], float]) -> SigmaRange:
        """The range as noise levels.

        percent_to_sigma: the model's own map from schedule share to sigma, decreasing.
        """
        # Rounding can put the first sigma of a schedule above the map's value at 0 %.
        most = math.inf if self.start == 0.0 else ROUNDING * float(percent_to_sigma(self.start))
        return SigmaRange(ROUNDING * float(percent_to_sigma(self.end)), most)

    def __str__(self) -> str:
        return f"{100 * self.start:g}% to {100 * self.end:g}%"


@dataclass(frozen=True)
class SigmaRange:
    """Noise levels above ``above`` and up to ``most``."""

    above: float
    most: float

    def __contains__(self, sigma: float) -> bool:
        return self.above < sigma <= self.most


def find_step(sigma: float, sigmas: tuple[float, ...]) -> int:
    """Index of the step that starts at or contains ``sigma`` in a descending list of sigmas.

    Samplers that evaluate the model between two listed sigmas stay in the step they are in.
    """
    tolerance = 1e-4 * sigma
    return max(0, sum(listed >= sigma - tolerance for listed in sigmas) - 1)


def find_share_left(sigma: float, levels: Sequence[float]) -> float:
    """The part of the schedule, 1 to 0, that a sampler has before it at this noise level.

    levels: all that the model knows, ascending, evenly spaced in time.
    """
    if sigma <= 0.0:
        return 0.0
    above = min(bisect_left(levels, sigma), len(levels) - 1)
    low, high = levels[max(above - 1, 0)], levels[above]
    within = min(max((sigma - low) / (high - low), 0.0), 1.0) if high > low else 1.0
    return (above + within) / len(levels)


def count_steps_before(left: Sequence[float]) -> int | None:
    """How many steps of a schedule are taken to lie before a run of it.

    Video models that come in two parts (Wan 2.2) are sampled in two runs. Where the steps of a run
    are equally long, the steps before are taken to be as long as these. Where they are not, a run
    that does not begin with noise alone is taken for the second half of a schedule, after a first
    half of as many steps. A run of less than two steps says nothing of the schedule: None.

    left: what is left of the schedule at the run's noise levels, see ``find_share_left``.
    """
    steps = len(left) - 1
    if steps < 2:
        return None
    *lengths, last = (before - after for before, after in pairwise(left))
    mean = sum(lengths) / len(lengths)
    ends_short = steps > 2 and left[-2] < SHORT_END
    compared = lengths if ends_short else [*lengths, last]
    if mean > 0 and all(abs(each - mean) <= UNEVEN * mean for each in compared):
        return round((1 - left[0]) / mean)
    return 0 if left[0] > 0.99 else steps


def find_long_steps(log_snr: Sequence[float]) -> frozenset[int]:
    """Numbers of the steps that are more than ``LONG_STEP`` times as long as the one before.

    Multistep samplers continue the line through their last two predictions (DPM-Solver++ 2M,
    arXiv 2211.01095, alg. 2). Over a long step this multiplies the difference of the two. If both
    read the same keys, they have nearly the same error, and their difference has little of it.

    log_snr: of the noise levels of a schedule. The step that ends without noise is not one of them.
    """
    lengths = [end - start for start, end in pairwise(log_snr)]
    return frozenset(
        number
        for number, (before, length) in enumerate(pairwise(lengths), start=1)
        if 0 < LONG_STEP * before < length < math.inf
    )
