"""What is drawn in the steps of a run, and in runs that go on from each other."""

from itertools import pairwise

import pytest
import torch
from comfy.model_sampling import ModelSamplingDiscreteFlow
from comfy.samplers import KSAMPLER, calculate_sigmas
from token_merge.nodes.hooks.run.state import ModelCall
from token_merge.tome_core.schedule import count_steps_before, find_share_left

SLOW = pytest.mark.thorough


@pytest.fixture(
    params=["merge", *(pytest.param(x, marks=SLOW) for x in ("stratified", "interleaved"))]
)
def model(request, unet, token_merge, token_downsample):
    if request.param == "merge":
        return token_merge(unet("SD15"))
    return token_downsample(unet("SD15"), method=request.param)


@pytest.fixture
def drawn(monkeypatch):
    """What each layer drew from: identity and index, in order."""
    found = []
    make_draws = ModelCall.make_draws

    def note(call, seed, of, device):
        draws = make_draws(call, seed, of, device)
        found.append((draws.identity, draws.index))
        return draws

    monkeypatch.setattr(ModelCall, "make_draws", note)
    return found


def test_a_run_goes_on_by_one_index_in_each_step(model, denoise, drawn):
    denoise(model, steps=4, scheduler="simple")
    of_a_step = len(drawn) // 4
    assert len({identity for identity, _ in drawn}) == of_a_step
    assert list(dict.fromkeys(index for _, index in drawn)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("model", "scheduler", "ends"),
    [
        ("merge", "simple", (2, 4)),
        pytest.param("merge", "karras", (3, 6), marks=SLOW),
        pytest.param("stratified", "simple", (2, 4, 6), marks=SLOW),
        pytest.param("interleaved", "simple", (2, 4, 6), marks=SLOW),
        pytest.param("interleaved", "karras", (3, 6), marks=SLOW),
    ],
    indirect=["model"],
)
def test_the_parts_of_a_schedule_go_on_from_each_other(model, denoise, scheduler, ends):
    """As with models that come in two parts, each for some of the steps."""
    steps = ends[-1]
    at_once = denoise(model, steps=steps, scheduler=scheduler)
    found = denoise(model, steps=steps, scheduler=scheduler, last_step=ends[0])
    for start, end in pairwise(ends):
        rest = {"latent": found, "disable_noise": True, "start_step": start, "last_step": end}
        found = denoise(model, steps=steps, scheduler=scheduler, **rest)
    torch.testing.assert_close(found, at_once, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("scheduler", ["simple", "sgm_uniform", "normal"])
@pytest.mark.parametrize("shift", [1.0, 3.0])
@pytest.mark.parametrize(("first", "steps"), [(2, 4), (3, 8), (5, 20)])
def test_even_schedules_of_comfyui_tell_how_many_steps_came_before(scheduler, shift, first, steps):
    sampling = ModelSamplingDiscreteFlow()
    sampling.set_parameters(shift=shift)
    rest = calculate_sigmas(sampling, scheduler, steps)[first:].tolist()
    known = sampling.sigmas.tolist()
    assert count_steps_before([find_share_left(sigma, known) for sigma in rest]) == first


def test_a_step_that_is_much_longer_than_the_one_before_draws_the_same(model, denoise, drawn):
    """The last but one of the "normal" schedule: 0.93 to 0.03, after 2.92 to 0.93."""
    denoise(model, steps=4, scheduler="normal")
    of_a_step = len(drawn) // 4
    indices = [index for _, index in drawn[::of_a_step]]
    assert indices == [0, 1, 1, 2]


def test_passes_of_one_step_do_not_draw_the_same(model, denoise, drawn):
    latent = None
    for step in range(4):
        options = {"start_step": step, "last_step": step + 1, "force_full_denoise": step == 3}
        if latent is not None:
            options |= {"disable_noise": True, "latent": latent}
        latent = denoise(model, steps=4, **options)
    assert {index for _, index in drawn} == {0}
    assert len({identity[:2] for identity, _ in drawn}) == 4


@torch.no_grad()
def visit_twice(model, x, sigmas, extra_args=None, callback=None, disable=None, **options):
    """As restart samplers: back at a noise level where the model was asked before. As all samplers
    it asks for no gradients; before 0.30 ComfyUI's weights do, where nothing says otherwise.
    """
    found = [model(x, sigmas[:1].expand(len(x)), **extra_args) for _ in range(2)]
    visited.extend(found)
    return x


visited: list[torch.Tensor] = []


def test_a_sampler_that_returns_to_a_noise_level_draws_anew(model, denoise, monkeypatch):
    visited.clear()
    monkeypatch.setattr("comfy.samplers.sampler_object", lambda name: KSAMPLER(visit_twice))
    denoise(model)
    first, second = visited
    assert not torch.equal(first, second)


def test_the_two_prompts_of_one_prediction_draw_the_same(model, denoise, monkeypatch):
    visited.clear()
    monkeypatch.setattr("comfy.samplers.sampler_object", lambda name: KSAMPLER(visit_twice))
    denoise(model)
    together = list(visited)
    visited.clear()
    monkeypatch.setattr(type(model), "get_free_memory", lambda *_: 1)
    denoise(model)
    torch.testing.assert_close(visited, together, rtol=1e-4, atol=1e-4)
