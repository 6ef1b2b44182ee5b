"""How long the steps of a run take, those with a node at work beside those without."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from ...tome_core.settings import Settings


@dataclass(frozen=True)
class _Step:
    number: int
    began: float
    active: tuple[Settings, ...]


@dataclass
class StepClock:
    """Marks when each step begins.

    It is read right after the noise level came from the device: all earlier work is done then.
    """

    steps: list[_Step] = field(default_factory=list)

    def mark(self, number: int, active: tuple[Settings, ...]) -> None:
        """A call of the model in this step begins, in which these settings act."""
        if not self.steps or self.steps[-1].number != number:
            self.steps.append(_Step(number, time.perf_counter(), active))

    def describe(self, settings: Settings) -> str:
        """To be called when the run is over."""
        if not self.steps:
            return ""
        end = time.perf_counter()
        text = f"{(end - self.steps[0].began) / len(self.steps):.2f} s per step"
        exact = [seconds for active, seconds in self._time_steps(end) if not active]
        reduced = [seconds for active, seconds in self._time_steps(end) if settings in active]
        if exact and reduced:
            text += (
                f"; {median(exact) / median(reduced):.2f}x as fast in {_count(reduced)} "
                f"as in {_count(exact)} without our nodes"
            )
        return text

    def _time_steps(self, end: float) -> Iterator[tuple[tuple[Settings, ...], float]]:
        """What acts, and the seconds. Without the first step, which also warms up the device."""
        ends = [step.began for step in self.steps[1:]] + [end]
        for step, ended in list(zip(self.steps, ends, strict=True))[1:]:
            yield step.active, ended - step.began


def _count(steps: list[float]) -> str:
    return f"{len(steps)} step{'s' * (len(steps) != 1)}"
