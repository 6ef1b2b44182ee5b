"""Sampling runs with both nodes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch
from comfy.model_patcher import ModelPatcher
from support.small_models import IMAGES, VIDEOS, SampleRequest, each, list_featured

REACHED = (*IMAGES, *VIDEOS)
MASK_PER_PICTURE = ("Qwen-Image", "Qwen-Image Edit", "Lens", "MageFlow", "LTXV", "Ideogram 4")


def named(name):
    (family,) = (family for family in REACHED if family.name == name)
    return family


@pytest.fixture(params=list_featured(REACHED), ids=str)
def family(request):
    return request.param


@pytest.fixture(params=["merge", "downsample"])
def node(request, token_merge, token_downsample):
    return token_merge if request.param == "merge" else token_downsample


@cache
def unpatched(family, run):
    return run.sample(family.build(), family)


def assert_close(first, second, family):
    """Up to the order of sums; CogVideoX starts at 4519 sigmas, from where digits are lost."""
    tolerance = 1e-3 if family.name.startswith("CogVideoX") else 1e-4
    scale = max(1.0, float(second.abs().max()))
    assert (first - second).abs().max() < tolerance * scale


def test_settings_that_do_nothing_give_the_original_pictures(family, token_merge, token_downsample):
    run, model, never = SampleRequest(steps=1), family.build(), {"start_percent": 0.999}
    assert torch.equal(run.sample(token_merge(model, ratio=0), family), unpatched(family, run))
    assert torch.equal(
        run.sample(token_downsample(model, factor=1), family), unpatched(family, run)
    )
    assert torch.equal(run.sample(token_merge(model, **never), family), unpatched(family, run))
    assert torch.equal(run.sample(token_downsample(model, **never), family), unpatched(family, run))


@pytest.mark.parametrize("family", each(REACHED))
def test_a_latent_that_does_not_fill_its_patches_is_sampled(family, node_in_turn):
    size = SampleRequest.with_tokens(family, 5, 7).size
    if family.pads:
        size = (*size[:-2], *(side - (side > 7) for side in size[-2:]))
    run = SampleRequest(size=size, steps=1)
    picture = run.sample(node_in_turn(family.build()), family)
    assert picture.shape == run.latent(family).shape
    assert torch.isfinite(picture).all()
    assert not torch.equal(picture, unpatched(family, run))


def test_pictures_of_a_batch_are_those_of_single_runs(family, node):
    if not family.batches:
        pytest.skip("ComfyUI itself computes one latent at a time")
    model, run = node(family.build()), SampleRequest(steps=1)
    both = replace(run, batch=2).sample(model, family)
    for n, picture in enumerate(both):
        single = replace(run, latent_seed=run.latent_seed + n).sample(model, family)
        assert_close(picture[None], single, family)


def test_prompts_computed_together_and_apart_agree(family, node_in_turn, monkeypatch):
    """Where memory is scarce, ComfyUI calls the model once per prompt."""
    if not family.batches:
        pytest.skip("ComfyUI itself computes one latent at a time")
    model, run = node_in_turn(family.build()), SampleRequest(cfg=3.0, steps=1)
    together = run.sample(model, family)
    monkeypatch.setattr(ModelPatcher, "get_free_memory", lambda self, device: 0)
    assert_close(together, run.sample(model, family), family)


def test_prompts_of_different_length_find_the_picture_each_in_its_place(family, node_in_turn):
    run = SampleRequest(cfg=3.0, uncond_text=5, steps=1)
    model = node_in_turn(family.build())
    cond = replace(run, cfg=1.0).sample(model, family)
    uncond = replace(run, cfg=1.0, text=5, prompt_seed=run.uncond_seed).sample(model, family)
    # One step of Euler to the end is linear in what the model predicts.
    assert_close(run.sample(model, family), uncond + 3.0 * (cond - uncond), family)


@pytest.mark.parametrize("family", each(map(named, MASK_PER_PICTURE)))
def test_two_prompts_with_different_masks_are_as_each_alone(family, node):
    run = SampleRequest(batch=2, masked=(1, 3), steps=1)
    for model in (family.build(), node(family.build())):
        first, second = run.sample(model, family)
        alone = replace(run, batch=1, masked=(1,))
        assert_close(first[None], alone.sample(model, family), family)
        alone = SampleRequest(masked=(3,), latent_seed=2, prompt_seed=3, steps=1)
        assert_close(second[None], alone.sample(model, family), family)


@pytest.mark.parametrize("family", each(map(named, (*MASK_PER_PICTURE, "Mochi"))))
def test_masked_tokens_stay_unseen(family, node):
    model, run = node(family.build()), SampleRequest(masked=(2,))
    picture = run.sample(model, family)
    assert torch.equal(replace(run, behind_mask=5.0).sample(model, family), picture)
    assert not torch.equal(replace(run, masked=(0,)).sample(model, family), picture)


@pytest.mark.parametrize("name", ["Flux Kontext", "Wan S2V"])
def test_global_randomness_and_the_given_model_stay_as_they_were(name, node):
    family = named(name)
    model, run = family.build(), SampleRequest()
    before = (repr(model.model_options), repr(model.wrappers))
    torch.manual_seed(5)
    picture = run.sample(model, family)
    randomness = torch.get_rng_state()
    torch.manual_seed(5)
    assert not torch.equal(run.sample(node(model), family), picture)
    assert torch.equal(torch.get_rng_state(), randomness)
    assert (repr(model.model_options), repr(model.wrappers)) == before
    assert torch.equal(run.sample(model, family), picture)
