"""In fp16 and bf16 a real GPU takes its fast kernels, and our error is about the usual one."""

from __future__ import annotations

import pytest
from support.real_gpu import run_on_cpu_and_gpu
from support.typed_models import MODELS, TYPES

DOWNSAMPLE = {
    "interleaved": {"local_window": "off"},
    "stratified": {"local_window": "off", "method": "stratified"},
    "window": {"local_window": "8"},
    "area": {"method": "area"},
}
MERGE = {
    "merged keys": {},
    "queries": {"target": "queries"},
    "downsampled keys": {"target": "queries, downsampled keys and values"},
    "no window": {"target": "queries, downsampled keys and values", "local_window": "off"},
}

BESIDE_UNPATCHED = 1.3
"""The error of Token Downsample is at most this share of the unpatched model's on the same GPU."""

BESIDE_CPU = 1.5
"""The error of Token Merge is at most this share of that on the CPU, where rounding tips choices,
too."""


def find_errors(model, exact_model, name, monkeypatch):
    """On the CPU and on the GPU, as shares of the float32 result."""
    exact = run_on_cpu_and_gpu(exact_model, MODELS[name].sample, monkeypatch).outputs[0].double()
    outputs = run_on_cpu_and_gpu(model, MODELS[name].sample, monkeypatch).outputs
    return [((each.double() - exact).norm() / exact.norm()).item() for each in outputs]


@pytest.mark.parametrize("types", TYPES.values(), ids=TYPES)
@pytest.mark.parametrize("inputs", DOWNSAMPLE.values(), ids=DOWNSAMPLE)
@pytest.mark.parametrize("name", MODELS)
def test_downsampling_has_about_the_error_of_the_unpatched_model(
    name, inputs, types, token_downsample, monkeypatch
):
    model, exact = MODELS[name].build(types), MODELS[name].build_exact(types)
    _, unpatched = find_errors(model, exact, name, monkeypatch)
    reduced = (token_downsample(each, **inputs) for each in (model, exact))
    _, ours = find_errors(*reduced, name, monkeypatch)
    assert ours < BESIDE_UNPATCHED * unpatched


@pytest.mark.parametrize("types", TYPES.values(), ids=TYPES)
@pytest.mark.parametrize("inputs", MERGE.values(), ids=MERGE)
@pytest.mark.parametrize("name", MODELS)
def test_merging_has_about_the_error_that_it_has_on_the_cpu(name, inputs, types, tome, monkeypatch):
    reduced = (
        tome(each, **inputs)
        for each in (MODELS[name].build(types), MODELS[name].build_exact(types))
    )
    cpu, gpu = find_errors(*reduced, name, monkeypatch)
    assert gpu < BESIDE_CPU * cpu
