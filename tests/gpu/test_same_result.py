"""A real GPU gives what the CPU gives, and ours waits for it once in a call: to read sigma."""

from __future__ import annotations

from functools import partial

import pytest
from support.one_head import compute_one_head_at_a_time
from support.real_gpu import run_on_cpu_and_gpu
from support.settings_tried import DOWNSAMPLE, MERGE, ON_UNETS
from support.small_models import IMAGES, VIDEOS, SampleRequest
from support.unet_sampling import sample
from support.unets import build_unet

UNETS = ["SD15", "SDXL", "Flux"]


def check_same(model, unpatched, sample_with, monkeypatch):
    """unpatched: the model without a node, whose results differ a little, too."""
    both = run_on_cpu_and_gpu(model, sample_with, monkeypatch)
    assert len(both.waits) <= 1, both.waits
    without = run_on_cpu_and_gpu(unpatched, sample_with, monkeypatch)
    most = 1e-3 + 2 * find_difference(*without.outputs)
    assert find_difference(*both.outputs) < most


def find_difference(here, there):
    return (here - there).abs().max().item()


@pytest.mark.parametrize("model", UNETS)
@pytest.mark.parametrize("inputs", MERGE.values(), ids=MERGE)
def test_merging(model, inputs, token_merge, monkeypatch):
    one_step = partial(sample, size=(32, 32), steps=1)
    unpatched = build_unet(model)
    check_same(token_merge(unpatched, **inputs), unpatched, one_step, monkeypatch)


def test_cross_attention_and_mlp(token_merge, monkeypatch):
    unpatched, one_step = build_unet("SD15"), partial(sample, size=(32, 32), steps=1)
    reduced = token_merge(unpatched, **ON_UNETS["cross-attention and MLP"])
    check_same(reduced, unpatched, one_step, monkeypatch)


@pytest.mark.parametrize("model", UNETS)
@pytest.mark.parametrize("inputs", DOWNSAMPLE.values(), ids=DOWNSAMPLE)
def test_downsampling(model, inputs, token_downsample, monkeypatch):
    one_step = partial(sample, size=(33, 40), steps=1)
    unpatched = build_unet(model)
    check_same(token_downsample(unpatched, **inputs), unpatched, one_step, monkeypatch)


@pytest.mark.parametrize("node", ["merge", "downsample"])
@pytest.mark.parametrize("family", [*IMAGES, *VIDEOS], ids=str)
def test_families(family, node, token_merge, token_downsample, monkeypatch):
    unpatched = family.build()
    model = (token_merge if node == "merge" else token_downsample)(unpatched)
    check_same(model, unpatched, partial(SampleRequest(steps=1).sample, family=family), monkeypatch)


@pytest.mark.parametrize("node", ["token_merge", "token_downsample"])
@pytest.mark.parametrize("family", [IMAGES[0], VIDEOS[0]], ids=str)
def test_one_head_at_a_time(family, node, request, monkeypatch):
    unpatched = family.build()
    model = request.getfixturevalue(node)(unpatched, local_window="off")
    compute_one_head_at_a_time(monkeypatch)
    check_same(model, unpatched, partial(SampleRequest(steps=1).sample, family=family), monkeypatch)
