"""How sure a mean is, alone and against another one of the same pictures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from benchmarks import intervals


def test_the_interval_is_that_of_students_t() -> None:
    values = [1.0, 2.0, 3.0, 4.0]
    found = intervals.mean(values)
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert found.half is not None
    assert (found.mean - found.half, found.mean + found.half) == pytest.approx((low, high))
    assert str(found) == "2.5 ± 2.1"


def test_one_value_has_no_interval() -> None:
    assert intervals.mean([3.0]) == intervals.Interval(3.0, None)


def test_pairs_tell_more_than_two_means() -> None:
    rng = np.random.default_rng(0)
    hard = rng.normal(25, 5, 16)
    ours = (hard + 2 + rng.normal(0, 0.5, 16)).tolist()
    gain = intervals.paired(ours, hard.tolist())
    alone = intervals.mean(ours)
    assert gain.half is not None and alone.half is not None
    assert gain.mean == pytest.approx(2, abs=0.5) and gain.half < alone.half / 3
    assert intervals.paired(ours, hard[:8].tolist()) == intervals.paired(
        ours[:8], hard[:8].tolist()
    )
