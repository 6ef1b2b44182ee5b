"""Which part of the denoising schedule a setting acts on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .checks import check_number

LEAP = 2.5
"""With 4, 8 and 20 steps, ComfyUI's "normal", "ddim_uniform", "kl_optimal" and "linear_quadratic"
have leaps, mostly the last step before the noise ends. Steps of its other schedules are at most
2.02 times as long as the one before ("beta")."""


@dataclass(frozen=True)
class PercentWindow:
    """The half-open part [start, end) of the schedule; 0.0 is its first step, 1.0 its end.

    Half-open, so that a window that ends at 0.5 and one that starts at 0.5 share no step.
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

    def overlaps(self, other: PercentWindow) -> bool:
        """True where some part of the schedule lies in both windows."""
        return self.start < other.end and other.start < self.end

    def find_sigmas(self, percent_to_sigma: Callable[[float], float]) -> SigmaRange:
        """The window as noise levels.

        percent_to_sigma: the model's own map from schedule share to sigma, decreasing.
        """
        # Rounding can put the first sigma of a schedule above the map's value at 0 %.
        most = math.inf if self.start == 0.0 else float(percent_to_sigma(self.start))
        return SigmaRange(float(percent_to_sigma(self.end)), most)

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


def count_steps_before(sigmas: Sequence[float], sigma_max: float) -> int | None:
    """How many steps of a schedule are taken to lie before a run of it.

    A run that does not begin with noise alone is taken for the second half of a schedule, after a
    first half of as many steps. Video models that come in two parts (Wan 2.2) are sampled so. A run
    of less than two steps says nothing of the schedule: None.

    sigmas: of the run. sigma_max: of the model.
    """
    steps = len(sigmas) - 1
    if steps < 2:
        return None
    return 0 if sigmas[0] > 0.99 * sigma_max else steps


def find_leaps(log_snr: Sequence[float]) -> frozenset[int]:
    """Numbers of the steps that are more than ``LEAP`` times as long as the one before.

    Multistep samplers continue the line through their last two predictions (DPM-Solver++ 2M,
    arXiv 2211.01095, alg. 2). Over a leap this multiplies the difference of the two. If both read
    the same keys, they have nearly the same error, and their difference has little of it.

    log_snr: of the noise levels of a schedule. The step that ends without noise is no leap.
    """
    lengths = [end - start for start, end in pairwise(log_snr)]
    return frozenset(
        number
        for number, (before, length) in enumerate(pairwise(lengths), start=1)
        if 0 < LEAP * before < length < math.inf
    )
