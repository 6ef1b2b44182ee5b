"""Tensors that ComfyUI hands over in containers, from version 0.33 on, are freed early beside us.

Stand-ins do what ``comfy/ldm/modules/attention.py`` does there: this ComfyUI may have none.
"""

from __future__ import annotations

import weakref
from dataclasses import replace

import comfy.ldm.modules.attention as comfy_attention
import comfy.ldm.wan.model
import pytest
import torch
from support.comfyui_version import needs_comfyui
from support.other_attention import OVERRIDE, attend_in_int8, patch_backend
from support.other_attention import set_model_optimized_attention as set_attention
from support.our_kernels import take_here
from support.small_models import VIDEOS, SampleRequest

from benchmarks.speed.memory import peak_memory

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


@needs_comfyui("0.33.0", "containers")
@pytest.mark.parametrize("node", ["token_downsample", "token_merge"])
def test_a_model_that_hands_containers_over_takes_no_more_memory_with_our_nodes(
    node, request, monkeypatch
):
    """As on a GPU: our kernels read keys where they lie. A processor only launches them here."""
    (small,) = (family for family in VIDEOS if family.name == "MiniMax H3")
    family = replace(small, settings={**small.settings, **WIDE})
    run = SampleRequest.with_tokens(family, 16, 16, steps=1)
    take_here(monkeypatch, "windows.attend", single_precision=True)
    for module in ("windows", "attention"):
        monkeypatch.setattr(f"token_merge.nodes.kernels.{module}.attention_triton", NoKernels())
    for module in ("comfy.ldm.minimax.model", "comfy.ldm.modules.attention"):
        attend = comfy_attention.attention_pytorch
        monkeypatch.setattr(f"{module}.optimized_attention", attend)
    model = family.build()
    assert measure(run, request.getfixturevalue(node)(model), family) <= measure(run, model, family)


WIDE = {
    "hidden_size": 1024,
    "num_layers": 1,
    "num_attention_heads": 8,
    "attention_head_dim": 128,
    "ffn_hidden_size": 2048,
    "rope_inv_freq_len": 16,
}
"""Channels as in the real model: beside few of them the numbers of the keys would weigh much."""


class NoKernels:
    """Kernels that compute nothing, and hold none of their arguments."""

    def __getattr__(self, name):
        return self

    def __getitem__(self, size):
        return lambda *_, **__: None


def measure(run, model, family):
    """Bytes at the peak of a run, after one in which what is kept was made."""
    run.sample(model, family)
    with peak_memory(torch.device("cpu")) as peak:
        run.sample(model, family)
    return peak.bytes
