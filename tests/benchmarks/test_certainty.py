"""When a ratio of times is known well enough, and what it is."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.speed import certainty
from benchmarks.speed.results import Case, Measured

SETTING = "merge"


def new_case(ours: list[float], *others: tuple[str, list[float]]) -> Case:
    measured = [Measured("plain", "plain", None, [9.0] * len(ours))]
    measured += [Measured(name, "peer", SETTING, seconds) for name, seconds in others]
    measured.append(Measured("ours", "ours", SETTING, ours))
    return Case("peers", "SD 1.5", 64, 64, 1, "float32", measured=measured)


def draw(mean: float, spread: float, rounds: int) -> list[float]:
    return (mean * np.exp(np.random.default_rng(0).normal(0, spread, rounds))).tolist()


def test_the_ratio_is_the_peers_time_over_ours() -> None:
    case = new_case([1.0, 2.0, 4.0], ("peer", [2.0, 4.0, 8.0]))
    [ratio] = certainty.compare_with_ours(case)
    assert (ratio.mean, ratio.low, ratio.high, ratio.rounds) == pytest.approx((2, 2, 2, 3))


def test_a_machine_that_slows_down_changes_no_ratio() -> None:
    slower = np.linspace(1, 3, 10)
    case = new_case(slower.tolist(), ("peer", (1.1 * slower).tolist()))
    [ratio] = certainty.compare_with_ours(case)
    assert ratio.mean == pytest.approx(1.1) and ratio.is_sure


def test_noisy_rounds_are_not_enough_and_many_of_them_are() -> None:
    few, many = (new_case([1.0] * n, ("peer", draw(1.05, 0.05, n))) for n in (12, 400))
    assert not certainty.is_sure(few)
    assert certainty.is_sure(many)


def test_every_ratio_must_be_sure() -> None:
    n = 20
    case = new_case([1.0] * n, ("steady", [1.2] * n), ("noisy", draw(1.0, 0.2, n)))
    assert not certainty.is_sure(case)


@pytest.mark.parametrize("rounds", [0, 1])
def test_without_two_rounds_nothing_is_known(rounds: int) -> None:
    case = new_case([1.0] * rounds, ("peer", [1.0] * rounds))
    assert certainty.compare_with_ours(case) == []
    assert not certainty.is_sure(case)


def test_few_rounds_are_never_enough() -> None:
    rounds = certainty.LEAST_ROUNDS - 1
    assert not certainty.is_sure(new_case([1.0] * rounds, ("peer", [2.0] * rounds)))
