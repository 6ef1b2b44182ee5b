"""Draws go by the noise level: a schedule in several passes draws what one pass draws."""

import pytest
import torch
from comfy.samplers import KSAMPLER


@pytest.fixture(params=["merge", "stratified", "interleaved"])
def model(request, unet, token_merge, token_downsample):
    if request.param == "merge":
        return token_merge(unet("SD15"))
    return token_downsample(unet("SD15"), method=request.param)


def test_passes_of_one_step_give_the_picture_of_one_pass(model, denoise):
    together = denoise(model, steps=4)
    latent = None
    for step in range(4):
        options = {"start_step": step, "last_step": step + 1, "force_full_denoise": step == 3}
        if latent is not None:
            options |= {"disable_noise": True, "latent": latent}
        latent = denoise(model, steps=4, **options)
    torch.testing.assert_close(latent, together, rtol=1e-3, atol=1e-3)


def visit_twice(model, x, sigmas, extra_args=None, callback=None, disable=None, **options):
    """As restart samplers: back at a noise level where the model was asked before."""
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
