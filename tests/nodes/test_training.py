"""Training gets the gradients of what was computed: ComfyUI's Train LoRA takes any MODEL."""

from __future__ import annotations

import comfy.model_management
import pytest
import torch
from support.gpu_attention import take_pytorch_attention
from support.small_models import IMAGES, VIDEOS, SampleRequest
from token_merge.nodes.hooks.attention.plan_attention import NO_GRADIENTS
from token_merge.nodes.hooks.transformer.attention import COMPUTED_TWICE
from torch.utils.checkpoint import checkpoint

FAMILIES = {family.name: family for family in (*IMAGES, *VIDEOS)}


@pytest.fixture
def find_gradient(monkeypatch):
    """Of the model's output with respect to the latent, in one call of the model.

    twice: the model is computed again in the backward pass, as Train LoRA does unless told not
    to.
    """
    # Else ComfyUI rotates queries and keys by a kernel without a backward pass.
    monkeypatch.setattr(comfy.model_management, "in_training", True, raising=False)

    def find(model, family, *, twice=True):
        diffusion_model, found = model.model.diffusion_model, []
        forward = diffusion_model.forward

        def compute_twice(*args, **kwargs):
            return checkpoint(forward, *args, use_reentrant=False, **kwargs)

        def call(apply, options):
            with torch.enable_grad(), monkeypatch.context() as patching:
                if twice:
                    patching.setattr(diffusion_model, "forward", compute_twice)
                x = options["input"].clone().requires_grad_()
                out = apply(x, options["timestep"], **options["c"])
                found.extend(torch.autograd.grad(out.square().sum(), x))
            return out.detach()

        clone = model.clone()
        clone.set_model_unet_function_wrapper(call)
        SampleRequest(steps=1).sample(clone, family)
        return found[0]

    return find


@pytest.mark.parametrize("node", ["token_merge", "token_downsample"])
@pytest.mark.parametrize("name", ["Flux", "Wan 2.1 T2V"])
def test_local_windows_are_left_out(name, node, request, find_gradient, messages):
    family = FAMILIES[name]
    model = request.getfixturevalue(node)(family.build())
    expected = find_gradient(family.build(), family)
    assert torch.equal(find_gradient(model, family), expected)
    assert any(NO_GRADIENTS in said for said in messages())


@pytest.mark.parametrize("node", ["token_merge", "token_downsample"])
def test_without_a_window_what_is_computed_again_is_the_same(node, request, find_gradient):
    family = FAMILIES["Wan 2.1 T2V"]
    model = request.getfixturevalue(node)(family.build(), local_window="off")
    once = find_gradient(model, family, twice=False)
    torch.testing.assert_close(find_gradient(model, family), once)
    assert not torch.allclose(once, find_gradient(family.build(), family))


@pytest.mark.parametrize("name", ["SD3", "AuraFlow"])
def test_models_that_do_not_tell_their_block_are_left_alone(
    name, token_downsample, find_gradient, messages
):
    family = FAMILIES[name]
    model = token_downsample(family.build(), local_window="off")
    expected = find_gradient(family.build(), family)
    torch.testing.assert_close(find_gradient(model, family), expected)
    assert any(COMPUTED_TWICE in said for said in messages())


def test_keys_are_weighed_where_channels_would_do_it(token_downsample, find_gradient, monkeypatch):
    """As on a GPU. They are written into memory, which has no backward pass."""
    family = FAMILIES["Flux"]
    take_pytorch_attention(monkeypatch)
    model = token_downsample(family.build(), local_window="off")
    expected = find_gradient(model, family)
    monkeypatch.setattr("token_merge.nodes.hooks.attention.backend.masks_are_free", lambda _: False)
    torch.testing.assert_close(find_gradient(model, family), expected)
