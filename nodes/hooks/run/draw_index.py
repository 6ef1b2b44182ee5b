"""How often a run drew before: by this index what is drawn cycles through all there is."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import inf


@dataclass
class DrawIndex:
    """The index counts the predictions that called the model before. A prediction of a long step
    keeps the index of the prediction before it. In this table each step has one prediction:

    ============================  =====  =====  =====  =====
    step                              0      1      2      3
    index                             0      1      2      3
    index where step 2 is long        0      1      1      2
    index where ``before`` is 8       8      9     10     11
    ============================  =====  =====  =====  =====

    All calls of the model for one prediction have one index. Calls on several devices may count the
    same prediction at once, see ``Run``.

    Args:
        long_steps: numbers of the steps that draw as the step before, see ``find_long_steps``.
        before: how often other runs of the schedule drew, see ``count_steps_before``; None where
            that is not known.
    """

    long_steps: frozenset[int] = frozenset()
    before: int | None = None
    _numbers: dict[tuple[int, float | None], int] = field(default_factory=dict)
    _held: set[int] = field(default_factory=set)

    def needs_sigma(self, prediction: int) -> bool:
        """Whether the index of this prediction depends on its noise level.

        Some guiders do not say that a prediction begins: it is 0 then, and the noise level tells
        them apart. A step has at least one prediction, so the first ones are in no long step.
        """
        first_long = min(self.long_steps, default=inf)
        return not prediction or self.before is None or prediction > first_long

    def find(self, prediction: int, sigma: float | None, step: int | None) -> int:
        """The index of a prediction.

        sigma, step: not None where ``needs_sigma`` says so, and else not looked at.
        """
        if not self.needs_sigma(prediction):
            sigma = step = None
        number = self._numbers.setdefault((prediction, sigma), len(self._numbers))
        if number and step in self.long_steps:
            self._held.add(number)
        return (self.before or 0) + number - len(self._held)

    @cached_property
    def origin(self) -> tuple[float, ...]:
        """What the draws depend on beside the index.

        Nothing where runs of one schedule go on from each other. Where the draws before are not
        known, the noise level of the first prediction, so that other runs draw other numbers.
        """
        if self.before is not None:
            return ()
        _, sigma = next(iter(self._numbers))
        assert sigma is not None
        return (sigma,)
