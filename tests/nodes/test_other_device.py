"""On a GPU nothing of ours waits for it, copies to or from it, or mixes it with the CPU."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from support.gpu_tensor import GpuTensor
from support.other_device import DEVICE, OtherDevice
from support.other_device_run import check_stays, put_on_other_device, run_on_both
from support.settings_tried import DOWNSAMPLE, MERGE, ON_UNETS
from token_merge.tome_core import layer
from token_merge.tome_core.windows import planning as window_planning

ON_SD15 = {
    *("default", "global", "k-th", "random", "queries", "keys and values"),
    *("stratified", "window", "stratified window", "bilinear", "area", "max"),
}
ON_SDXL = {"default", "window"}
"""UNets take longer than a transformer, and compute much as it does."""


def try_each(settings):
    slow = pytest.mark.thorough
    cases = [
        *(("Flux", name, ()) for name in settings),
        *(
            ("SD15", name, () if name == "default" else slow)
            for name in settings
            if name in ON_SD15
        ),
        *(("SDXL", name, slow) for name in settings if name in ON_SDXL),
    ]
    parameters = [
        pytest.param(model, settings[name], id=f"{model}-{name}", marks=marks)
        for model, name, marks in cases
    ]
    return pytest.mark.parametrize(("model", "inputs"), parameters)


@try_each(MERGE)
def test_merging_stays_on_its_device(model, inputs, unet, token_merge, denoise, monkeypatch):
    sample = partial(denoise, size=(32, 32), steps=1)
    check_stays(run_on_both(token_merge(unet(model), **inputs), sample, monkeypatch))


@pytest.mark.parametrize("inputs", ON_UNETS.values(), ids=ON_UNETS)
def test_what_merges_in_unets_alone_does_too(inputs, unet, token_merge, denoise, monkeypatch):
    sample = partial(denoise, size=(32, 32), steps=1)
    check_stays(run_on_both(token_merge(unet("SD15"), **inputs), sample, monkeypatch))


@try_each(DOWNSAMPLE)
def test_downsampling_stays_on_its_device(
    model, inputs, unet, token_downsample, denoise, monkeypatch
):
    sample = partial(denoise, size=(33, 40), steps=1)
    check_stays(run_on_both(token_downsample(unet(model), **inputs), sample, monkeypatch))


@pytest.mark.parametrize("model", [pytest.param("SD15", marks=pytest.mark.thorough), "Flux"])
def test_both_together_do_too(model, unet, token_merge, token_downsample, denoise, monkeypatch):
    both = token_downsample(token_merge(unet(model), target="queries"))
    check_stays(run_on_both(both, partial(denoise, size=(32, 32), steps=1), monkeypatch))


def test_a_gpu_reduces_no_few_tokens_unless_a_window_is_asked_for(
    flux, token_downsample, denoise, messages, monkeypatch
):
    sample = partial(denoise, size=(40, 40), steps=1)
    for side, said in (
        ("auto", "400 tokens are too few to gain without our kernel"),
        ("16", "reads"),
    ):
        with monkeypatch.context() as patching:
            model = put_on_other_device(token_downsample(flux, local_window=side), patching)
            patching.setattr(window_planning, "LEAST_FOR_WINDOWS", {"cuda": 6400})
            before = len(messages())
            sample(model)
        assert said in " ".join(messages()[before:])


def test_a_gpu_merges_no_few_tokens(unet, token_merge, denoise, messages, monkeypatch):
    sample = partial(denoise, size=(32, 31), steps=1)
    model = put_on_other_device(token_merge(unet("SD15")), monkeypatch)
    monkeypatch.setattr(layer, "LEAST_FLOPS", {"merging": 3e11})
    sample(model)
    assert "992 tokens are too few to gain" in messages()[0]


def wait(x):
    return bool((x > 0).all())


def copy(x):
    return x + torch.tensor([1.0], device=DEVICE)


def mix(x):
    return x + torch.ones(1)


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (wait, "wait"),
        (lambda x: x[x > 0], "wait"),
        (lambda x: x.nonzero(), "wait"),
        (lambda x: x.tolist(), "wait"),
        (copy, "copy"),
        (lambda x: x.cpu(), "copy"),
        (lambda x: x.to("cpu"), "copy"),
        (lambda x: torch.ones(3).to(x.device), "copy"),
        (mix, "mixed devices"),
        (lambda x: torch.cat([x, torch.ones(1)]), "mixed devices"),
    ],
)
def test_the_device_sees_what_it_has_to(function, kind, monkeypatch):
    monkeypatch.setattr("support.other_device.OURS", (__file__,))
    with OtherDevice() as device:
        function(GpuTensor(torch.ones(4)))
    assert kind in {each.kind for each in device.crossings}


def test_the_device_lets_pass_what_stays_on_it(monkeypatch):
    monkeypatch.setattr("support.other_device.OURS", (__file__,))
    with OtherDevice() as device:
        x = GpuTensor(torch.ones(4))
        y = (x + 1.0).view(2, 2).mT @ torch.zeros(2, 3, device=x.device)
        assert y.shape == (2, 3)
        assert y.device == x.device
    assert device.crossings == []
