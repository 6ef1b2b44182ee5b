"""Tensors that ComfyUI hands over in containers, from version 0.33 on, are freed early beside us.

Stand-ins do what ``comfy/ldm/modules/attention.py`` does there: this ComfyUI may have none.
"""

from __future__ import annotations

import weakref

import comfy.ldm.modules.attention as comfy_attention
import comfy.ldm.wan.model
import pytest
import torch
from support.other_attention import OVERRIDE, attend_in_int8, patch_backend
from support.other_attention import set_model_optimized_attention as set_attention
from support.small_models import VIDEOS, SampleRequest

(WAN,) = (family for family in VIDEOS if family.name == "Wan 2.1 T2V")
RUN = SampleRequest.with_tokens(WAN, 16, 16, steps=1)


class Container:
    def __init__(self, tensor):
        self.tensor = tensor

    def peek(self):
        assert self.tensor is not None, "it was taken out already"
        return self.tensor

    def take(self):
        tensor, self.tensor = self.peek(), None
        return tensor


class Kernel:
    """ComfyUI's attention, which frees what it is given before it computes.

    alive: for each call, how many of its tensors somebody still held then.
    """

    __name__ = "attention_comfy_kitchen_int8"
    __module__ = comfy_attention.__name__

    def __init__(self):
        self.alive = []

    def __call__(self, q, k, v, *args, **options):
        containers = [x if isinstance(x, Container) else Container(x) for x in (q, k, v)]
        del q, k, v
        return self.container_function(*containers, *args, **options)

    def container_function(self, q, k, v, *args, **options):
        inputs = [x.take() for x in (q, k, v)]
        copies = [x.clone() for x in inputs]
        held = [weakref.ref(x) for x in inputs]
        inputs.clear()
        self.alive.append(sum(ref() is not None for ref in held))
        options.pop("_inside_attn_wrapper", None)
        return attend_in_int8(*copies, *args, **options)


@pytest.fixture
def kernel(monkeypatch):
    """Of a ComfyUI whose Wan hands containers over."""
    kernel = Kernel()

    def attend(q, k, v, *args, **options):
        containers = [Container(x.clone()) for x in (q, k, v)]
        given = {**options, "_inside_attn_wrapper": True}
        override = options["transformer_options"].get(OVERRIDE)
        if override is None:
            return kernel.container_function(*containers, *args, **given)
        if hasattr(override, "container_function"):
            return override.container_function(*containers, *args, **given)
        return override(kernel, *(x.take() for x in containers), *args, **given)

    monkeypatch.setattr(comfy.ldm.wan.model, "optimized_attention", attend)
    monkeypatch.setattr(comfy_attention, "optimized_attention", kernel)
    return kernel


def count_blocks():
    return len(WAN.build().model.diffusion_model.blocks)


def test_layers_that_are_not_reduced_get_their_containers_unopened(kernel, token_downsample):
    picture = RUN.sample(WAN.build(), WAN)
    kernel.alive.clear()
    # Few enough tokens for the limit: nothing is reduced, but each layer is looked at.
    model = token_downsample(WAN.build(), factor=1, max_tokens=1024)
    assert torch.equal(RUN.sample(model, WAN), picture)
    assert kernel.alive == [0] * 2 * count_blocks()


def test_other_layers_keep_their_containers_beside_local_windows(kernel, token_downsample):
    RUN.sample(token_downsample(WAN.build()), WAN)
    assert kernel.alive == [0] * count_blocks(), "cross-attention"


@pytest.mark.parametrize("window", ["auto", "off"])
def test_reduced_layers_compute_the_same_of_containers(
    window, kernel, token_downsample, monkeypatch
):
    model = token_downsample(WAN.build(), local_window=window)
    picture = RUN.sample(model, WAN)
    monkeypatch.setattr(comfy.ldm.wan.model, "optimized_attention", of_tensors(kernel))
    assert torch.equal(RUN.sample(model, WAN), picture)


def of_tensors(kernel):
    """As before version 0.33."""

    def attend(*args, **options):
        override = options["transformer_options"].get(OVERRIDE)
        return override(kernel, *args, **options) if override else kernel(*args, **options)

    return attend


def test_a_backend_of_another_node_gets_containers_where_it_takes_them(
    kernel, token_downsample, monkeypatch
):
    model = WAN.build().clone()
    monkeypatch.setattr(type(model), set_attention.__name__, set_attention, raising=False)
    model = patch_backend(model, kernel)
    override = model.model_options["transformer_options"][OVERRIDE]
    override.container_function = kernel.container_function
    RUN.sample(token_downsample(model, factor=1, max_tokens=1024), WAN)
    # It was tried once with tensors before.
    assert kernel.alive[1:] == [0] * 2 * count_blocks()
