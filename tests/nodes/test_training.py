"""Training gets the gradients of the unpatched model: ComfyUI's Train LoRA takes any MODEL."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import comfy.model_management
import pytest
import torch
from comfy.model_patcher import ModelPatcher
from support.small_models import IMAGES, VIDEOS, SampleRequest
from support.unet_sampling import sample
from support.unets import build_unet

FAMILIES = {family.name: family for family in (*IMAGES, *VIDEOS)}


def build(name: str) -> tuple[ModelPatcher, Callable[[ModelPatcher], Any]]:
    """A small model, and how it is sampled."""
    if name == "SD 1.5":
        return build_unet("SD15"), partial(sample, steps=1, cfg=1.0)
    family = FAMILIES[name]
    return family.build(), partial(SampleRequest(steps=1).sample, family=family)


def find_gradient(model: ModelPatcher, run: Callable[[ModelPatcher], Any]) -> torch.Tensor:
    """Of the model's output with respect to the latent, in one call of the model."""
    found = []

    def call(apply, options):
        with torch.enable_grad():
            x = options["input"].clone().requires_grad_()
            out = apply(x, options["timestep"], **options["c"])
            found.extend(torch.autograd.grad(out.square().sum(), x))
        return out.detach()

    clone = model.clone()
    clone.set_model_unet_function_wrapper(call)
    run(clone)
    return found[0]


@pytest.mark.parametrize("node", ["token_merge", "token_downsample"])
@pytest.mark.parametrize("name", ["SD 1.5", "SD3", "Wan 2.1 T2V"])
def test_nothing_is_reduced(name, node, request, messages, monkeypatch):
    """Where a block is computed again in the backward pass, ComfyUI may tell it as another one."""
    # Else ComfyUI rotates queries and keys by a kernel without a backward pass.
    monkeypatch.setattr(comfy.model_management, "in_training", True, raising=False)
    model, run = build(name)
    patched = request.getfixturevalue(node)(model)
    assert torch.equal(find_gradient(patched, run), find_gradient(model, run))
    assert any("training needs gradients of all tokens" in said for said in messages())
