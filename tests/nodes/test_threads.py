"""Two runs at once on one model. ComfyUI's server runs one at a time; scripts may not."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from support.at_once import keep_together, run_at_once
from support.modes import MODES, UNPATCHED
from token_merge.nodes.hooks.run.draw_index import DrawIndex
from token_merge.nodes.hooks.run.report import Counts, RunReport
from token_merge.tome_core.merging.settings import MergeSettings

BY_NAME = {str(mode): mode for mode in (UNPATCHED, *MODES)}


@pytest.mark.parametrize(
    ("name", "mode", "clones"),
    [
        ("Flux", "every option", 1),
        *(
            pytest.param(*case, marks=pytest.mark.thorough)
            for case in (
                ("SD15", "unpatched", 1),
                ("SD15", "merge", 1),
                ("Flux", "downsample", 1),
                ("SD15", "stratified", 1),
                ("Flux", "local window", 1),
                ("Flux", "merged keys", 1),
                ("SD15", "every option", 1),
                ("SD15", "every option", 2),
                ("Flux", "every option", 2),
            )
        ),
    ],
)
def test_two_runs_at_once_are_as_one_after_the_other(name, mode, clones, unet, denoise, messages):
    """clones: on so many clones of the model."""
    reduced = BY_NAME[mode].put_on(unet(name))
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
    sigmas = (9.0, 8.0, 7.0, 1.0, 0.0)

    def count(index, step):
        return [index.find(step + 1, sigmas[step], step) for _ in range(20)]

    for _ in range(100):
        index = DrawIndex(frozenset({2}))
        for step, expected in enumerate([0, 1, 1, 2]):
            found = run_at_once(*[partial(count, index, step) for _ in range(2)])
            assert found == [[expected] * 20] * 2


def test_a_report_is_read_while_another_call_adds_to_it():
    settings = MergeSettings()
    layers = range(1, 201)

    def add(report):
        for layer in layers:
            report.reduce(settings, layer, Counts(layer, 1, 1))
            report.say(settings, f"reason {layer}", layer)
        return describe(report)

    def describe(report):
        return report.sum_up(settings), report.list_done(settings), report.list_left(settings)

    def read(report):
        return [describe(report) for _ in range(20)][-1]

    for _ in range(50):
        report = RunReport()
        (verdict, done, left), _ = run_at_once(partial(add, report), partial(read, report))
        assert verdict[1] == "in 200 of 200 layers"
        assert len(done) == len(left) == len(layers)
