"""How long the steps of a run take, those with a node at work beside those without."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from statistics import median

from ...tome_core.settings import Settings


@dataclass(frozen=True)
class _Step:
    """number: None where it is not known."""

    number: int | None
    began: float
    active: tuple[Settings, ...]


@dataclass
class StepClock:
    """Marks when each step begins.

    It is read right after the noise level came from the device: all earlier work is done then.
    Steps whose noise level was not needed have no number. Of several such steps in a row only the
    first is marked. Calls on several devices may mark the same step at once.
    """

    marks: list[_Step] = field(default_factory=list)

    def mark(self, number: int | None, active: tuple[Settings, ...]) -> None:
        """A call of the model in this step begins, in which these settings act."""
        if not self.marks or self.marks[-1].number != number:
            self.marks.append(_Step(number, time.perf_counter(), active))

    @property
    def steps(self) -> list[_Step]:
        """The first mark of each step."""
        return [next(same) for _, same in groupby(self.marks, key=lambda step: step.number)]

    def describe(self, settings: Settings, scheduled: int) -> str:
        """To be called when the run is over and the device is done.

        scheduled: how many steps the run's schedule has.
        """
        steps = self.steps
        if not steps:
            return ""
        end = time.perf_counter()
        known = all(step.number is not None for step in steps)
        taken = len(steps) if known else scheduled
        text = f"{(end - steps[0].began) / taken:.2f} s per step"
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
        steps = self.steps
        ends = [step.began for step in steps[1:]] + [end]
        for step, ended in list(zip(steps, ends, strict=True))[1:]:
            yield step.active, ended - step.began


def _count(steps: list[float]) -> str:
    return f"{len(steps)} step{'s' * (len(steps) != 1)}"
