"""Layers in which reducing tokens would not pay are not reduced, and cost next to nothing."""

from collections import Counter

import pytest
import torch
from comfy_extras.nodes_model_downscale import PatchModelAddDownscale
from support.installed_patches import watch_installed
from token_merge.nodes.hooks.attention import plan_attention
from token_merge.tome_core import layer as layer_size
from token_merge.tome_core.windows import planning as window_planning

STEPS = 4


@pytest.fixture
def planned(monkeypatch):
    """Who drew in each layer that was planned so far."""
    found = []
    plan_layer = plan_attention.plan_layer

    def note(settings, targets, layer, draws, tokens):
        found.append(draws.identity)
        return plan_layer(settings, targets, layer, draws, tokens)

    monkeypatch.setattr(plan_attention, "plan_layer", note)
    return found


def pay_from(monkeypatch, flops):
    monkeypatch.setattr(layer_size, "find_least", lambda kind, device: flops)


def test_they_are_planned_once_in_a_run(unet, token_merge, denoise, planned, monkeypatch):
    pay_from(monkeypatch, 1e30)
    unpatched = unet("Flux")
    merged = token_merge(unpatched)
    assert torch.equal(denoise(merged, steps=STEPS), denoise(unpatched, steps=STEPS))
    layers = set(planned)
    assert len(planned) == len(layers) > 1
    denoise(merged, steps=STEPS)
    assert len(planned) == 2 * len(layers)


def test_in_a_unet_whose_finest_layers_are_reduced_coarser_ones_are_planned_once(
    unet, token_merge, denoise, planned, monkeypatch
):
    pay_from(monkeypatch, 4 * 100**2 * 64)  # of 100 tokens with 64 channels
    denoise(token_merge(unet("SD15"), max_downsample="2"), steps=STEPS)
    assert {*Counter(planned).values()} == {1, STEPS}


@pytest.mark.parametrize("kind", ["token_merge", "token_downsample"])
def test_a_unet_without_any_layer_that_pays_is_called_without_hooks(
    kind, unet, denoise, messages, monkeypatch, request
):
    pay_from(monkeypatch, 1e30)
    unpatched = unet("SD15")
    patched, hooks = watch_installed(request.getfixturevalue(kind)(unpatched))
    assert torch.equal(denoise(patched, steps=STEPS), denoise(unpatched, steps=STEPS))
    assert hooks == [set()] * len(hooks)
    assert len(hooks) >= STEPS
    assert "3 layers skipped: 256 tokens are too few" in messages()[0]


def test_one_of_two_nodes_that_pays_is_enough_for_hooks(
    unet, token_merge, token_downsample, denoise, messages, monkeypatch
):
    pay_from(monkeypatch, 1e30)
    first = token_merge(unet("SD15"), end_percent=0.5)
    # A size as local_window asks for fewer tokens however few there are.
    both = token_downsample(first, start_percent=0.5, local_window="8")
    watched, hooks = watch_installed(both)
    denoise(watched, steps=STEPS)
    assert all("attn1_patch" in names for names in hooks)
    assert len(hooks) >= STEPS
    assert any("3 layers skipped: 256 tokens are too few" in line for line in messages())
    assert any("3 layers: 256 tokens, attention reads" in line for line in messages())


@pytest.mark.parametrize(("least", "installed"), [(72, True), (73, False)])
def test_odd_sides_are_halved_as_the_unet_halves_them(
    least, installed, unet, token_downsample, denoise, messages, monkeypatch
):
    pay_from(monkeypatch, 4 * least**2 * 64)  # of so many tokens with 64 channels
    patched = token_downsample(unet("SD15"), factor=1.0, factor_level_2=2.0)
    watched, hooks = watch_installed(patched)
    denoise(watched, steps=STEPS, size=(17, 15))
    assert all(bool(names) == installed for names in hooks)
    did = "72 tokens, attention reads" if installed else "72 tokens are too few"
    assert did in messages()[0]


def test_one_that_is_not_reduced_at_one_size_is_reduced_at_another_in_the_same_run(
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


def test_as_many_tokens_in_another_shape_are_planned_anew(unet, token_merge, denoise, messages):
    model = token_merge(unet("Flux"), local_window="off")

    def call_flat_first(apply_model, call):
        x = call["input"]
        flat = x.reshape(*x.shape[:2], 2, -1)  # one row of tokens
        apply_model(flat, call["timestep"], **call["c"])
        return apply_model(x, call["timestep"], **call["c"])

    model.set_model_unet_function_wrapper(call_flat_first)
    denoise(model, steps=STEPS)
    reduced, skipped = messages()
    assert "2 layers: 71 tokens, attention computes" in reduced
    assert "2 layers skipped: grid 1x64 is smaller than one 2x2 cell" in skipped


def test_the_next_run_says_again_why(unet, token_merge, denoise, messages, monkeypatch):
    pay_from(monkeypatch, 1e30)
    merged = token_merge(unet("SD15"))
    denoise(merged, steps=STEPS)
    said = messages()
    denoise(merged, steps=STEPS)
    assert messages() == [*said, *said]


@pytest.mark.parametrize("kind", ["token_merge", "token_downsample"])
@pytest.mark.parametrize("model", ["SD15", "Flux"])
def test_on_request_the_picture_does_not_depend_on_how_fast_the_gpu_is(
    model, kind, unet, denoise, monkeypatch, request
):
    """A slow GPU gains in every layer, and a fast one in none."""
    patch = request.getfixturevalue(kind)

    def draw(flops, choice):
        pay_from(monkeypatch, flops)
        return denoise(patch(unet(model), reduce_small_layers=choice), steps=STEPS)

    slow, fast = (draw(flops, "always") for flops in (0.0, 1e30))
    assert torch.equal(slow, fast)
    assert torch.equal(slow, draw(0.0, "auto"))
    assert not torch.equal(slow, draw(1e30, "auto"))


def test_on_request_the_picture_does_not_depend_on_whether_our_kernel_runs(
    unet, token_downsample, denoise, monkeypatch
):
    """A GPU without it takes larger tiles of queries, so that others are near."""

    def draw(queries, choice):
        monkeypatch.setattr(window_planning, "QUERIES_AT_ONCE", {"cpu": queries})
        model = token_downsample(unet("Flux"), reduce_small_layers=choice)
        return denoise(model, steps=1, size=(80, 48))

    with_kernel, without = (draw(queries, "always") for queries in (1, 128))
    assert torch.equal(with_kernel, without)
    assert not torch.equal(with_kernel, draw(128, "auto"))
