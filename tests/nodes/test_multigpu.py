"""ComfyUI's MultiGPU CFG Split: each prompt on a device of its own, in a thread of its own."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from support.modes import MODES
from support.other_device_run import ONE_READ
from support.two_devices import (
    FIRST,
    SECOND,
    Calls,
    compute_second_elsewhere,
    have_two_devices,
    load,
    split,
)

TRIED = [
    ("Flux", "merge"),
    ("SD15", "downsample"),
    ("Flux", "local window"),
    ("SD15", "merged keys"),
    ("SD15", "every option"),
    ("Flux", "every option"),
]
BY_NAME = {str(mode): mode for mode in MODES}
CASES = pytest.mark.parametrize(
    ("name", "mode"),
    [
        pytest.param(
            *(name, BY_NAME[mode]),
            id=f"{name}-{mode}",
            marks=() if (name, mode) == TRIED[0] else pytest.mark.thorough,
        )
        for name, mode in TRIED
    ],
)
# Heun asks twice at each noise level but the first, so there are more draws than steps.
STEPS = {"steps": 3, "sampler": "heun"}


@pytest.fixture
def model(name, monkeypatch):
    have_two_devices(monkeypatch)
    return _load_once(name)


_load_once = cache(load)


@pytest.fixture
def apart(monkeypatch, denoise):
    """A run on one device that calls the model once for each prompt."""

    def run(model, **options):
        with monkeypatch.context() as patching:
            patching.setattr(type(model), "get_free_memory", lambda *_: 1)
            return denoise(model, **options)

    return run


@CASES
def test_two_devices_give_the_picture_and_the_report_of_one(
    name, mode, model, apart, denoise, messages
):
    ours = mode.put_on(model)
    expected = apart(ours, **STEPS)
    said = messages()
    assert said
    for on_two in (split(ours), mode.put_on(split(model))):
        calls = Calls()
        before = len(messages())
        with calls.watch(on_two) as watched:
            assert torch.equal(denoise(watched, **STEPS), expected)
        assert messages()[before:] == said
        assert calls.devices.count(SECOND) == calls.devices.count(FIRST) == 5
        assert {len(threads) for threads in calls.threads.values()} == {1}
        assert len(set().union(*calls.threads.values())) == 2
    assert not torch.equal(expected, apart(model, **STEPS))


@CASES
def test_nothing_of_one_device_reaches_the_other(name, mode, model, apart, denoise, monkeypatch):
    ours, crossings = mode.put_on(model), []
    expected = apart(ours, steps=2)
    found = denoise(compute_second_elsewhere(split(ours), crossings, monkeypatch), steps=2)
    reads = 2 * ONE_READ if str(mode) == "every option" else []  # it ends before the schedule does
    assert [(each.kind, each.operation) for each in crossings] == reads
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["SD15"])
def test_an_error_in_a_thread_stops_the_run(model, token_merge, denoise, messages, monkeypatch):
    def plan_layer(*args):
        raise ValueError("a defect")

    monkeypatch.setattr("token_merge.nodes.hooks.attention.plan_attention.plan_layer", plan_layer)
    with pytest.raises(ValueError, match="a defect"):
        denoise(split(token_merge(model)))
    assert messages() == []
