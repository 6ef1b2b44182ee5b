"""The steps that decide what a transformer's picture shows are the unpatched model's."""

import pytest
import torch

from benchmarks import ours
from benchmarks.quality.effort import EffortWatch

EXACT = {1: 1, 4: 1, 5: 1, 8: 2, 10: 2, 20: 4}
"""For each number of steps, so many of them."""


@pytest.fixture(params=["TokenMerge", "TokenDownsample"])
def apply(request):
    """One of the simple nodes with its defaults."""
    return lambda model, **inputs: ours.apply(request.param, model, **inputs)


@pytest.mark.parametrize("scheduler", ["normal", "simple"])
@pytest.mark.parametrize("steps", EXACT)
def test_on_a_transformer_the_first_fifth_is_exact(apply, steps, scheduler, flux, denoise):
    def count_pairs(model, steps):
        watch = EffortWatch()
        denoise(watch.attach(model), steps=steps, size=(32, 32), scheduler=scheduler)
        return watch.effort.pairs

    one, reduced = (count_pairs(model, 1) for model in (flux, apply(flux, exact_early_steps=False)))
    assert reduced < one
    exact = EXACT[steps]
    assert count_pairs(apply(flux), steps) == exact * one + (steps - exact) * reduced


def test_they_can_be_reduced_too(apply, flux, denoise):
    few = {"steps": 1, "size": (32, 32)}
    assert torch.equal(denoise(apply(flux), **few), denoise(flux, **few))
    reduced = denoise(apply(flux, exact_early_steps=False), **few)
    assert not torch.equal(reduced, denoise(flux, **few))


def test_a_run_without_later_steps_says_why_nothing_is_reduced(apply, flux, denoise, messages):
    denoise(apply(flux), steps=1)
    (message,) = messages()
    said = "none of its steps lies in 20% to 100% of the schedule; turn exact_early_steps off to "
    assert said in message


@pytest.mark.parametrize("name", ["SD15", "Flux"])
def test_a_range_that_was_chosen_by_hand_is_not_put_down_to_them(name, unet, denoise, messages):
    denoise(ours.apply("TokenMergeAdvanced", unet(name), start_percent=0.2), steps=1)
    assert messages()[0].endswith("lies in 20% to 100% of the schedule.")


def test_a_run_says_which_part_is_reduced(apply, flux, denoise, messages):
    denoise(apply(flux), steps=4, size=(32, 32))
    assert messages()[-1].endswith(": acts from 20% to 100% of the schedule.")


def test_on_a_unet_all_steps_are_reduced(apply, unet, denoise):
    models = (apply(unet("SD15"), exact_early_steps=exact) for exact in (True, False))
    assert torch.equal(*(denoise(model, steps=4) for model in models))


@pytest.mark.parametrize("end", [0.15, 0.2])
def test_a_range_within_them_is_refused(end, flux, unet):
    inputs = {"end_percent": end, "exact_early_steps": True}
    ours.apply("TokenMergeAdvanced", unet("SD15"), **inputs)
    expected = f"end_percent is {end}, expected more than 0.2, or exact_early_steps off"
    with pytest.raises(ValueError, match=expected):
        ours.apply("TokenMergeAdvanced", flux, **inputs)


def test_two_nodes_share_a_schedule_where_the_first_one_ends(flux, denoise):
    early = {"end_percent": 0.2, "exact_early_steps": False}
    first = ours.apply("TokenDownsampleAdvanced", flux, **early)
    both = ours.apply("TokenDownsample", first)
    whole = ours.apply("TokenDownsample", flux, exact_early_steps=False)
    run = {"steps": 5, "size": (32, 32)}
    assert torch.equal(denoise(both, **run), denoise(whole, **run))


def test_a_range_that_starts_later_is_kept(flux, denoise):
    inputs = {"start_percent": 0.5}
    models = (
        ours.apply("TokenMergeAdvanced", flux, exact_early_steps=exact, **inputs)
        for exact in (True, False)
    )
    run = {"steps": 4, "size": (32, 32)}
    assert torch.equal(*(denoise(model, **run) for model in models))


def test_the_end_of_a_range_is_kept(flux, denoise):
    models = (
        ours.apply("TokenMergeAdvanced", flux, end_percent=0.6, **inputs)
        for inputs in ({}, {"start_percent": 0.2, "exact_early_steps": False})
    )
    run = {"steps": 5, "size": (32, 32)}
    assert torch.equal(*(denoise(model, **run) for model in models))


def test_two_simple_nodes_are_refused_with_what_can_be_done(apply, flux):
    expected = "use one of the two nodes, or, in the Advanced nodes, ranges"
    with pytest.raises(ValueError, match=expected):
        apply(apply(flux))
