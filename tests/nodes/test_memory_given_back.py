"""What is kept for a grid is given back where ComfyUI unloads models."""

from __future__ import annotations

import comfy.model_management
import pytest
import torch
from token_merge.tome_core.constants import STORE


@pytest.fixture(autouse=True)
def nothing_else():
    """Neither models nor constants of other tests."""
    comfy.model_management.current_loaded_models.clear()
    STORE.empty()


@pytest.mark.parametrize("name", ["Flux", "SD15"])
def test_unloading_the_models_gives_it_back(name, unet, denoise, token_downsample):
    model = token_downsample(unet(name))
    picture = denoise(model, size=(24, 24))
    assert STORE.bytes
    comfy.model_management.unload_all_models()  # as for "Unload models" and "Free cache"
    assert STORE.bytes == 0
    assert torch.equal(denoise(model, size=(24, 24)), picture)


def test_a_clone_that_another_node_made_gives_it_back(unet, denoise, token_downsample):
    model = token_downsample(unet("Flux")).clone()
    denoise(model)
    assert STORE.bytes
    comfy.model_management.unload_all_models()
    assert STORE.bytes == 0


def test_the_original_model_in_its_place_gives_it_back(unet, denoise, token_downsample):
    """ComfyUI then unloads a model that knows nothing of our nodes."""
    model = token_downsample(unet("Flux"))
    denoise(model)
    assert STORE.bytes
    denoise(unet("Flux"))
    assert STORE.bytes == 0
    del model


def test_a_node_that_was_removed_gives_it_back(unet, denoise, token_downsample):
    """ComfyUI drops its model and is left with the original one."""
    model = token_downsample(unet("Flux"))
    denoise(model)
    assert STORE.bytes
    del model
    comfy.model_management.cleanup_models_gc()
    assert STORE.bytes == 0


def test_runs_that_follow_each_other_keep_it(unet, denoise, token_downsample):
    model = token_downsample(unet("Flux"))
    denoise(model)
    held = STORE.bytes
    denoise(model)
    assert STORE.bytes == held > 0


def test_a_clone_that_is_dropped_takes_nothing_from_a_run_of_another(
    unet, denoise, token_downsample
):
    """As the garbage collection may do at any time."""
    clones = [token_downsample(unet("Flux"))]
    held = []

    def drop(*_):
        clones.clear()
        held.append(STORE.bytes)

    denoise(token_downsample(unet("Flux")), steps=2, callback=drop)
    assert held[0] > 0
