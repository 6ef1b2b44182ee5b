"""Layers in which reducing tokens would not pay are left whole, and cost next to nothing."""

import pytest
import torch
from comfy_extras.nodes_model_downscale import PatchModelAddDownscale
from token_merge.nodes.hooks import planner
from token_merge.tome_core import layer_tokens

STEPS = 4


@pytest.fixture
def planned(monkeypatch):
    """Who drew in each layer that was planned so far."""
    found = []
    plan_parts = planner.plan_parts

    def note(settings, layer, parts):
        found.append(layer.draws.identity)
        return plan_parts(settings, layer, parts)

    monkeypatch.setattr(planner, "plan_parts", note)
    return found


def pay_from(monkeypatch, flops):
    monkeypatch.setattr(layer_tokens, "find_least", lambda kind, device: flops)


@pytest.mark.parametrize("name", ["SD15", "Flux"])
def test_they_are_planned_once_in_a_run(name, unet, token_merge, denoise, planned, monkeypatch):
    pay_from(monkeypatch, float("inf"))
    plain = unet(name)
    merged = token_merge(plain)
    assert torch.equal(denoise(merged, steps=STEPS), denoise(plain, steps=STEPS))
    layers = set(planned)
    assert len(planned) == len(layers) > 1
    denoise(merged, steps=STEPS)
    assert len(planned) == 2 * len(layers)


def test_one_that_stays_whole_at_one_size_is_reduced_at_another_in_the_same_run(
    unet, token_merge, denoise, messages, monkeypatch
):
    pay_from(monkeypatch, 4 * 100**2 * 32)  # of 100 tokens with 32 channels
    shrunk = PatchModelAddDownscale.execute(
        unet("SD15"), 0, 2.0, 0.0, 0.5, True, "bicubic", "bicubic"
    ).args[0]
    denoise(token_merge(shrunk), steps=STEPS)
    reduced, skipped = messages()
    assert "3 layers: 256 tokens, attention computes" in reduced
    assert "2 layers skipped: 64 tokens are too few" in skipped


def test_the_next_run_says_again_why(unet, token_merge, denoise, messages, monkeypatch):
    pay_from(monkeypatch, float("inf"))
    merged = token_merge(unet("SD15"))
    denoise(merged, steps=STEPS)
    said = messages()
    denoise(merged, steps=STEPS)
    assert messages() == [*said, *said]
