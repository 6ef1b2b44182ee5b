"""Each call of the model asks the GPU for the same, as a captured CUDA graph would replay it.

The first call is left out: it also computes what is kept for later calls. A capture is preceded by
such a call anyway.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from support.other_device_run import record_operations

MODELS = pytest.mark.parametrize("model", ["SD15", "Flux"])

# Nothing here is drawn: not even the numbers that our code hands to an operation change.
MERGE = {
    "first of each cell": {"random_destinations": False},
    "k-th": {"matching": "k-th"},
    "MLP": {"random_destinations": False, "merge_mlp": True, "merge_cross_attention": True},
}
ON_UNETS = {"toma": {"matching": "toma"}}
DOWNSAMPLE = {
    "nearest-exact": {"method": "nearest-exact"},
    "area": {"method": "area"},
}

# A number of the host tells which numbers are drawn: the key of the draws, or how far they went
# round their cells. Nothing else changes.
DRAWN_MERGE = {"default": {}, "random": {"matching": "random"}}
DRAWN_DOWNSAMPLE = {
    "interleaved": {"local_window": "off"},
    "stratified": {"local_window": "off", "method": "stratified"},
    "window": {"local_window": "8"},
}


def check_same(model, denoise, monkeypatch, drawn):
    sample = partial(denoise, size=(32, 32), steps=3, cfg=1.0)
    _, *calls = record_operations(model, sample, monkeypatch)
    assert len(calls) == 2
    assert calls[0]
    keys = [
        one.numbers != other.numbers
        and one.place.startswith(("draws.py", "cells.py", "drawn_keys.py"))
        for one, other in zip(*calls, strict=True)
    ]
    assert any(keys) == drawn
    for one, other in pairwise(calls):
        assert [_forget(*pair) for pair in zip(one, keys, strict=True)] == [
            _forget(*pair) for pair in zip(other, keys, strict=True)
        ]


def _forget(operation, is_key):
    return replace(operation, numbers=()) if is_key else operation


@MODELS
@pytest.mark.parametrize("inputs", MERGE.values(), ids=MERGE)
def test_merging_without_draws_is_the_same(model, inputs, unet, tome, denoise, monkeypatch):
    check_same(tome(unet(model), **inputs), denoise, monkeypatch, drawn=False)


@pytest.mark.parametrize("inputs", ON_UNETS.values(), ids=ON_UNETS)
def test_so_is_what_merges_in_unets_alone(inputs, unet, tome, denoise, monkeypatch):
    check_same(tome(unet("SD15"), **inputs), denoise, monkeypatch, drawn=False)


@MODELS
@pytest.mark.parametrize("inputs", DOWNSAMPLE.values(), ids=DOWNSAMPLE)
def test_downsampling_without_draws_is_the_same(
    model, inputs, unet, token_downsample, denoise, monkeypatch
):
    check_same(token_downsample(unet(model), **inputs), denoise, monkeypatch, drawn=False)


@MODELS
@pytest.mark.parametrize("inputs", DRAWN_MERGE.values(), ids=DRAWN_MERGE)
def test_of_merging_with_draws_only_their_key_changes(
    model, inputs, unet, token_merge, denoise, monkeypatch
):
    check_same(token_merge(unet(model), **inputs), denoise, monkeypatch, drawn=True)


@MODELS
@pytest.mark.parametrize("inputs", DRAWN_DOWNSAMPLE.values(), ids=DRAWN_DOWNSAMPLE)
def test_of_downsampling_with_draws_only_their_place_changes(
    model, inputs, unet, token_downsample, denoise, monkeypatch
):
    check_same(token_downsample(unet(model), **inputs), denoise, monkeypatch, drawn=True)
