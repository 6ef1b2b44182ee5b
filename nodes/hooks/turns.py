"""The turns of a run: how often the run drew before, so that what is drawn can go round."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Turns:
    """Counts the predictions of a run in which the model was called.

    Calls on several devices may count the same prediction at once, see ``Run``.

    leaps: numbers of the steps that draw as the step before, see ``find_leaps``. before: turns
    that other runs of the schedule had, see ``count_steps_before``; None where that is not known.
    """

    leaps: frozenset[int] = frozenset()
    before: int | None = None
    _numbers: dict[tuple[int, float], int] = field(default_factory=dict)
    _held: set[int] = field(default_factory=set)

    def count(self, prediction: int, sigma: float, step: int) -> int:
        """The turn of this prediction: how many came before it, but for those of leaps."""
        # Some guiders do not say that a prediction begins; then the noise level tells them apart.
        number = self._numbers.setdefault((prediction, sigma), len(self._numbers))
        if number and step in self.leaps:
            self._held.add(number)
        return (self.before or 0) + number - len(self._held)

    @property
    def origin(self) -> tuple[float, ...]:
        """What the draws depend on beside the turn.

        Nothing where runs of one schedule go on from each other. Where the turns before are not
        known, the noise level of the first prediction, so that other runs draw other numbers.
        """
        if self.before is not None:
            return ()
        _, sigma = next(iter(self._numbers))
        return (sigma,)
