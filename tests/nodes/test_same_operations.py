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

# Nothing here is drawn: not even the numbers that our code hands to an operation change.
MERGE = {
    "first of each cell": {"random_destinations": False},
    "k-th": {"matching": "k-th"},
    "MLP": {"random_destinations": False, "merge_mlp": True, "merge_cross_attention": True},
}
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
        and one.place.startswith(("draws.py", "cells.py", "key_cells.py"))
        for one, other in zip(*calls, strict=True)
    ]
    assert any(keys) == drawn
    for one, other in pairwise(calls):
        assert [_forget(*pair) for pair in zip(one, keys, strict=True)] == [
            _forget(*pair) for pair in zip(other, keys, strict=True)
        ]


def _forget(operation, is_key):
    return replace(operation, numbers=()) if is_key else operation


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        pytest.param("SD15", MERGE["MLP"], id="SD15-MLP"),
        *(pytest.param("Flux", MERGE[name], id=f"Flux-{name}") for name in MERGE if name != "MLP"),
    ],
)
def test_merging_without_draws_is_the_same(model, inputs, unet, tome, denoise, monkeypatch):
    check_same(tome(unet(model), **inputs), denoise, monkeypatch, drawn=False)


@pytest.mark.parametrize("inputs", DOWNSAMPLE.values(), ids=DOWNSAMPLE)
def test_downsampling_without_draws_is_the_same(
    inputs, unet, token_downsample, denoise, monkeypatch
):
    check_same(token_downsample(unet("Flux"), **inputs), denoise, monkeypatch, drawn=False)


def try_each(settings, on_unet):
    """On a transformer; and one of them on a UNet, which takes longer."""
    slow = pytest.param("SD15", settings[on_unet], id=f"SD15-{on_unet}", marks=pytest.mark.thorough)
    cases = (pytest.param("Flux", settings[name], id=f"Flux-{name}") for name in settings)
    return pytest.mark.parametrize(("model", "inputs"), [*cases, slow])


@try_each(DRAWN_MERGE, on_unet="random")
def test_of_merging_with_draws_only_their_key_changes(
    model, inputs, unet, token_merge, denoise, monkeypatch
):
    check_same(token_merge(unet(model), **inputs), denoise, monkeypatch, drawn=True)


def test_downsampling_a_unet_moves_tokens_three_times_a_layer(
    unet, token_downsample, denoise, monkeypatch
):
    """Queries into groups, their keys, and the outputs back: what is drawn was drawn in the steps
    before, and a fast GPU waits for each operation that is started.
    """
    sample = partial(denoise, size=(32, 32), steps=6, cfg=1.0)
    model = token_downsample(unet("SD15"), local_window="off")
    *_, call = record_operations(model, sample, monkeypatch)
    moving = [one.name for one in call if one.place.startswith("tokens.py") and one.results]
    views = {"flatten", "unflatten", "expand", "reshape"}
    layers = 3
    assert [name for name in moving if name not in views] == ["index_select"] * 3 * layers


@try_each(DRAWN_DOWNSAMPLE, on_unet="window")
def test_of_downsampling_with_draws_only_their_place_changes(
    model, inputs, unet, token_downsample, denoise, monkeypatch
):
    check_same(token_downsample(unet(model), **inputs), denoise, monkeypatch, drawn=True)
