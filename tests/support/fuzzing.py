"""How many cases a fuzz test draws, and the count of what came of them.

``python -m devtools soak`` draws many, other ones each time; all other runs draw a few, the same
each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import hypothesis


@dataclass
class Soak:
    """cases: of each part, None for the short form. outcomes: by test, of all its cases. notes:
    what else was measured.
    """

    cases: int | None = None
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def count(self, test: str, outcome: str) -> None:
        self.outcomes.setdefault(test, Counter())[outcome] += 1

    def describe(self) -> list[str]:
        """A line for each test, and the notes."""
        return self.notes + [
            f"{test}: {counts.total():,} cases: "
            + ", ".join(f"{number:,} {outcome}" for outcome, number in counts.most_common())
            for test, counts in sorted(self.outcomes.items())
        ]


SOAK = Soak()


def fuzzed(*, short: int, share: float) -> hypothesis.settings:
    """Settings of a fuzz test.

    short: how many cases of it the short form draws. share: of the cases of the long form.
    """
    many = SOAK.cases
    return hypothesis.settings(
        max_examples=short if many is None else max(1, round(share * many)),
        derandomize=many is None,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(hypothesis.HealthCheck),
    )


def attempt(what: Callable[..., Any], *args: Any) -> tuple[Any, Exception | None]:
    """What came of it: a result and no error, or the other way round."""
    try:
        return what(*args), None
    except Exception as error:
        return None, error
