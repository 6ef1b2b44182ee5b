"""The turns of a run: how often the run drew before, so that what is drawn can go round."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Turns:
    """Counts the predictions of a run in which the model was called.

    Calls on several devices may count the same prediction at once, see ``Run``.

    leaps: numbers of the steps that draw as the step before, see ``find_leaps``.
    """

    leaps: frozenset[int] = frozenset()
    _numbers: dict[tuple[int, float], int] = field(default_factory=dict)
    _held: set[int] = field(default_factory=set)

    def count(self, prediction: int, sigma: float, step: int) -> int:
        """The turn of this prediction: how many came before it, but for those of leaps."""
        # Some guiders do not say that a prediction begins; then the noise level tells them apart.
        number = self._numbers.setdefault((prediction, sigma), len(self._numbers))
        if number and step in self.leaps:
            self._held.add(number)
        return number - len(self._held)

    @property
    def first_sigma(self) -> float:
        """The noise level of the first prediction that was counted."""
        _, sigma = next(iter(self._numbers))
        return sigma
