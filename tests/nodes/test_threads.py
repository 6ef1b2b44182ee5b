"""Two runs at once on one model. ComfyUI's server runs one at a time; scripts may not."""

from __future__ import annotations

from functools import partial
from threading import Barrier, get_ident

import pytest
import torch
from support.at_once import keep_together, run_at_once
from support.modes import MODES, PLAIN
from token_merge.nodes.hooks.model_call import Run
from token_merge.nodes.hooks.run_report import RunReport
from token_merge.nodes.hooks.step_clock import StepClock
from token_merge.nodes.hooks.turns import Turns
from token_merge.tome_core.merge_settings import MergeSettings

CASES = [(mode, 1) for mode in (PLAIN, *MODES)] + [(MODES[-1], 2)]
"""Modes, each with the number of clones on which two runs go at once."""


@pytest.fixture(params=["SD15", "Flux"])
def model(request, unet):
    return unet(request.param)


@pytest.mark.parametrize(("mode", "clones"), CASES, ids=str)
def test_two_runs_at_once_are_as_one_after_the_other(mode, clones, model, denoise, messages):
    reduced = mode.put_on(model)
    sizes = [(16, 16), (24, 16)]
    alone = [denoise(reduced, size=size) for size in sizes]
    said = messages()
    models = [reduced, reduced.clone() if clones == 2 else reduced]
    runs = zip(keep_together(models), sizes, strict=True)
    together = run_at_once(*(partial(denoise, each, size=size) for each, size in runs))
    for one, other in zip(together, alone, strict=True):
        assert torch.equal(one, other)
    assert sorted(messages()) == sorted(2 * said)


def test_calls_at_once_are_counted_as_they_are_one_after_the_other():
    def count(run, step):
        numbers = [run.begin_call(get_ident()) for _ in range(200)]
        return numbers, [run.turns.count(run.prediction, run.sigmas[step], step) for _ in range(20)]

    for _ in range(100):
        run = Run((9.0, 8.0, 7.0, 1.0, 0.0), turns=Turns(frozenset({2})))
        for step, turn in enumerate([0, 1, 1, 2]):
            run.begin_prediction()
            (numbers, turns), (others, turns_of_others) = run_at_once(
                *[partial(count, run, step) for _ in range(2)]
            )
            assert len({*numbers, *others}) == 400
            assert turns == turns_of_others == [turn] * 20


def test_a_report_is_read_while_another_call_adds_to_it():
    settings = MergeSettings()
    layers = range(200)

    def add(report):
        for layer in layers:
            report.reduce(settings, layer, layer, 1, 1)
            report.skip([settings], layer, f"reason {layer}")
        return report.describe(settings)

    def read(report):
        return [report.describe(settings) for _ in range(20)][-1]

    for _ in range(50):
        report = RunReport()
        outcome, _ = run_at_once(partial(add, report), partial(read, report))
        assert len(outcome.done) == len(outcome.left) == len(layers)


def test_a_step_that_two_calls_begin_at_once_is_one_step():
    barrier = Barrier(2, timeout=60)

    class Number(int):
        """Of a step; it is compared by both threads before either goes on."""

        def __ne__(self, other):
            barrier.wait()
            return int(self) != other

    clock = StepClock()
    clock.mark(0, ())
    run_at_once(*[partial(clock.mark, Number(1), ()) for _ in range(2)])
    assert [int(step.number) for step in clock.steps] == [0, 1]
