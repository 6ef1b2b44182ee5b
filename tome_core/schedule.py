"""Which part of the denoising schedule a setting acts on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class PercentWindow:
    """The half-open part [start, end) of the schedule; 0.0 is its first step, 1.0 its end.

    Half-open, so that a window that ends at 0.5 and one that starts at 0.5 share no step.
    """

    start: float = 0.0
    end: float = 1.0

    def __post_init__(self) -> None:
        for name, percent in (("start_percent", self.start), ("end_percent", self.end)):
            if not 0.0 <= percent <= 1.0:
                raise ValueError(f"{name} is {percent}, expected 0.0 to 1.0")
        if not self.start < self.end:
            raise ValueError(
                f"start_percent is {self.start}, expected less than end_percent, "
                f"which is {self.end}"
            )

    def overlaps(self, other: PercentWindow) -> bool:
        """True where some part of the schedule lies in both windows."""
        return self.start < other.end and other.start < self.end

    def contains_sigma(self, sigma: float, percent_to_sigma: Callable[[float], float]) -> bool:
        """True where a step at noise level ``sigma`` lies in the window.

        percent_to_sigma: the model's own map from schedule share to sigma, decreasing.
        """
        return float(percent_to_sigma(self.end)) < sigma <= float(percent_to_sigma(self.start))

    def __str__(self) -> str:
        return f"{100 * self.start:g}% to {100 * self.end:g}%"


def step_of_sigma(sigma: float, sigmas: tuple[float, ...]) -> int:
    """Index of the step that starts at or contains ``sigma`` in a descending list of sigmas.

    Samplers that evaluate the model between two listed sigmas stay in the step they are in.
    """
    tolerance = 1e-4 * sigma
    return max(0, sum(listed >= sigma - tolerance for listed in sigmas) - 1)
