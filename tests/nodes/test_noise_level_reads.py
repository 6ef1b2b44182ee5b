"""The noise level is read from the device only where something depends on it."""

import pytest
import torch
from token_merge.nodes.hooks.run import node_text, wrappers
from token_merge.nodes.hooks.run.draw_index import DrawIndex
from token_merge.tome_core.schedule import PercentRange

STEPS = 6


@pytest.fixture
def reads(monkeypatch):
    """The noise levels that were read so far."""
    found = []
    find_step = wrappers.find_step

    def note(sigma, sigmas):
        found.append(sigma)
        return find_step(sigma, sigmas)

    monkeypatch.setattr(wrappers, "find_step", note)
    return found


@pytest.mark.parametrize("sampler", ["euler", "heun", "dpmpp_2m"])
def test_with_the_defaults_it_is_not_read(sampler, unet, token_merge, denoise, reads):
    denoise(token_merge(unet("SD15")), steps=STEPS, scheduler="simple", sampler=sampler)
    assert not reads


@pytest.mark.parametrize(
    "inputs",
    [{"start_percent": 0.2}, {"end_percent": 0.9}],
    ids=lambda inputs: next(iter(inputs)),
)
def test_it_is_read_once_a_call_where_an_input_asks_for_it(
    inputs, unet, token_merge, denoise, reads
):
    denoise(token_merge(unet("SD15"), **inputs), steps=STEPS, scheduler="simple")
    assert len(reads) == STEPS
    assert reads == sorted(reads, reverse=True)


def test_it_is_read_in_every_call_of_a_transformer_whose_early_steps_are_exact(
    flux, token_merge, denoise, reads
):
    denoise(token_merge(flux), steps=STEPS, scheduler="simple")
    assert not reads
    denoise(token_merge(flux, exact_early_steps=True), steps=STEPS, scheduler="simple")
    assert len(reads) == STEPS


def test_it_is_read_from_the_first_long_step_of_the_schedule_on(
    unet, token_merge, denoise, reads, monkeypatch
):
    monkeypatch.setattr(wrappers, "find_long_steps", lambda _: frozenset({4}))
    denoise(token_merge(unet("SD15")), steps=STEPS, scheduler="simple")
    assert len(reads) == 2


def test_what_is_told_meanwhile_does_not_change_the_picture(
    unet, token_merge, denoise, reads, monkeypatch
):
    model = token_merge(unet("SD15"))
    pictures = [denoise(model, steps=STEPS, scheduler="simple")]
    assert not reads
    monkeypatch.setattr(node_text, "SECONDS_BETWEEN", 0.0)
    pictures.append(denoise(model, steps=STEPS, scheduler="simple"))
    assert not reads
    assert torch.equal(*pictures)


def test_whether_it_is_read_does_not_change_the_picture(flux, token_merge, denoise, monkeypatch):
    model = token_merge(flux)
    for sampler in ("euler", "heun", "dpm_2_ancestral"):
        pictures = [denoise(model, steps=STEPS, sampler=sampler)]
        with monkeypatch.context() as patching:
            patching.setattr(PercentRange, "is_whole", False)
            pictures.append(denoise(model, steps=STEPS, sampler=sampler))
        assert torch.equal(*pictures)


def test_indices_go_on_where_no_noise_level_is_known():
    index = DrawIndex(before=3)
    assert [index.find(prediction, None, None) for prediction in (1, 1, 2, 3)] == [3, 3, 4, 5]
    assert index.origin == ()
    assert not index.needs_sigma(1)


@pytest.mark.parametrize(
    ("index", "prediction"),
    [(DrawIndex(before=0), 0), (DrawIndex(), 1), (DrawIndex(frozenset({2}), 0), 3)],
    ids=["no prediction begins", "what came before is not known", "a long step may come"],
)
def test_some_indices_depend_on_the_noise_level(index, prediction):
    assert index.needs_sigma(prediction)
