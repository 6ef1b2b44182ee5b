"""What was measured survives an interruption, a failure and the end of the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.speed.results import Case, Measured, Results
from benchmarks.speed.session import Runner, Session


def session(out: Path, deadline: float = float("inf")) -> Session:
    return Session(Results(), out, Console(quiet=True), deadline)


def new_case() -> Case:
    return Case("unet", "SD 1.5", 512, 512, 1, "float32")


def runner(name: str, log: list[str], again: Callable[[int], None] = lambda _: None) -> Runner:
    def inspect() -> float:
        log.append(f"{name} first")
        return 100.0

    def run(number: int) -> float:
        again(number)
        log.append(f"{name} {number}")
        return float(number)

    return Runner(Measured(name, "ours"), inspect, run)


def test_variants_take_turns_both_ways_and_the_warm_up_is_not_counted(tmp_path: Path) -> None:
    log: list[str] = []
    case = new_case()
    session(tmp_path).measure(case, [runner("a", log), runner("b", log)], rounds=2)
    assert log == ["b first", "a first", "a 0", "b 0", "b 1", "a 1"]
    assert case.measured[1].seconds == [0.0, 1.0]


def test_without_a_warm_up_the_first_round_counts_after_one_call_that_does_not(
    tmp_path: Path,
) -> None:
    case, log = new_case(), []
    runners = [runner("a", log), runner("b", log)]
    session(tmp_path).measure(case, runners, rounds=2, warm_up=False)
    assert log == ["a 0", "a first", "b first", "b 1", "a 1"]
    assert case.measured[0].seconds == [100.0, 1.0]


def test_an_interruption_keeps_the_rounds_before_it(tmp_path: Path) -> None:
    def interrupt(number: int) -> None:
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session(tmp_path).measure(new_case(), [runner("a", [], interrupt)], rounds=5)
    assert Results.read(tmp_path).cases[0].measured[0].seconds == [0.0, 1.0]


def test_a_failure_is_noted_and_the_others_go_on(tmp_path: Path) -> None:
    def fail(number: int) -> None:
        raise RuntimeError("out of memory\ndetails")

    case = new_case()
    session(tmp_path).measure(case, [runner("a", [], fail), runner("b", [])], rounds=2)
    assert (case.measured[0].failed, case.measured[0].seconds) == ("out of memory", [])
    assert case.measured[1].seconds == [0.0, 1.0]


def test_no_round_starts_that_would_end_after_the_deadline(tmp_path: Path) -> None:
    running = session(tmp_path)

    def time_is_up(number: int) -> None:
        running.deadline = time.monotonic() if number == 1 else running.deadline

    case = new_case()
    running.measure(case, [runner("a", [], time_is_up), runner("b", [])], rounds=5)
    assert [one.seconds for one in case.measured] == [[0.0, 1.0], [0.0, 1.0]]


def test_no_case_starts_after_the_deadline(tmp_path: Path) -> None:
    late = session(tmp_path, deadline=time.monotonic() - 1)
    late.measure(new_case(), [runner("a", [])], rounds=5)
    assert late.results.cases == []


def test_a_case_replaces_its_earlier_measurement_only(tmp_path: Path) -> None:
    results = Results()
    first, other, again = new_case(), new_case(), new_case()
    other.width = 768
    for case in (first, other, again):
        results.put(case)
    assert [id(case) for case in results.cases] == [id(other), id(again)]
