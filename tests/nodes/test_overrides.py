"""Attention that other nodes put in place of ComfyUI's is told apart by what it is known to do."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
import torch
from comfy.ldm.modules import attention
from comfy.model_patcher import ModelPatcher
from support import other_attention as others
from support.small_models import VIDEOS, SampleRequest
from token_merge.nodes.hooks.attention import backend_speeds
from token_merge.nodes.hooks.attention.backend import Backend
from token_merge.nodes.hooks.attention.overrides import identify
from token_merge.tome_core.faster_forms import FORMS, Form
from token_merge.tome_core.windows.int8 import attend_in_int8
from torch import nn

(WAN,) = (family for family in VIDEOS if family.name == "Wan 2.1 T2V")
RUN = SampleRequest.with_tokens(WAN, 16, 16, steps=2)
CPU = torch.device("cpu")


@pytest.fixture
def setter(monkeypatch):
    """ComfyUI's ``set_model_optimized_attention``, or a stand-in where it has none yet."""
    if not hasattr(ModelPatcher, "set_model_optimized_attention"):
        made = others.set_model_optimized_attention
        monkeypatch.setattr(ModelPatcher, made.__name__, made, raising=False)


def read(model):
    override = model.model_options["transformer_options"][others.OVERRIDE]
    found = identify(override, CPU, torch.float32)
    return found.name, found.like


@pytest.mark.parametrize(
    ("patch", "known"),
    [
        (others.patch_sage, ("SageAttention (KJNodes)", "sageattn")),
        (others.patch_sparse, ("Model Sparse Attention", "")),
        (others.patch_gate, ("ComfyUI-Gate", "")),
        (others.patch_unknown, ("another node", "")),
    ],
)
def test_an_override_is_known_by_its_source(patch, known):
    assert read(patch(WAN.build())) == known


def test_the_function_of_model_attention_backend_is_read_from_it(setter):
    model = WAN.build()
    known = read(others.patch_backend(model, attention.attention_pytorch))
    assert known == ("Model Attention Backend", "attention_pytorch")
    known = read(others.patch_comfy_kitchen(model))
    assert known == ("Model Attention Backend", "attention_comfy_kitchen_int8")
    assert read(others.patch_backend(model, lambda *args, **kwargs: None))[1] == ""


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (lambda q, *_, **__: q, "was off by"),
        (lambda q, *_, **__: q[:, :1], "gave an output of shape"),
        (Mock(side_effect=RuntimeError("no kernel")), "failed on random tensors (no kernel)"),
    ],
)
def test_a_backend_that_does_not_compute_attention_is_an_error_in_the_log(kernel, reason, messages):
    model = others.patch_sage(WAN.build(), kernel)
    assert read(model) == read(model) == ("SageAttention (KJNodes)", "")
    (said,) = messages()
    assert said.startswith(
        f"Token Merge: SageAttention (KJNodes) is treated as unknown, since it {reason}"
    )


@pytest.mark.parametrize("order", ["before", "after"])
def test_windows_stay_beside_a_backend_which_computes_the_rest(order, token_downsample, messages):
    kernel = Mock(side_effect=others.attend_in_int8)
    both = put(order, token_downsample, lambda model: others.patch_sage(model, kernel))
    RUN.sample(both, WAN)
    (said,) = messages()
    assert said.endswith("keys, in local windows beside SageAttention (KJNodes).")
    lengths = {call.args[1].shape[-2] for call in kernel.call_args_list}
    assert lengths == {128, RUN.text}, "it was tried once, and then got cross-attention alone"


@pytest.mark.parametrize(
    "other",
    [others.patch_sage, others.patch_comfy_kitchen, others.patch_gate, others.patch_unknown],
)
@pytest.mark.parametrize("node", ["token_merge", "token_downsample"])
def test_both_orders_of_the_nodes_give_the_same_picture(other, node, setter, request):
    node = request.getfixturevalue(node)
    pictures = [RUN.sample(put(order, node, other), WAN) for order in ("before", "after")]
    assert torch.equal(*pictures)


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("node", ["token_merge", "token_downsample"])
def test_an_algorithm_has_its_layers_for_itself(order, node, request, messages):
    node = request.getfixturevalue(node)
    picture = RUN.sample(put(order, node, others.patch_sparse), WAN)
    assert torch.equal(picture, RUN.sample(others.patch_sparse(WAN.build()), WAN))
    assert "Model Sparse Attention is at work; use one of the two" in messages()[0]


def test_without_windows_keys_get_their_weights_where_a_backend_takes_a_mask(
    setter, token_merge, messages
):
    model = others.patch_comfy_kitchen(WAN.build())
    RUN.sample(token_merge(model, target="queries, keys and values"), WAN)
    assert not any("proportional_attention" in said for said in messages())


@pytest.fixture
def windows(monkeypatch):
    """As where our kernels run. The list has the precision of each call of them."""
    computed = []

    def attend(plan, *given):
        computed.append(plan.precision)
        return attend_in_int8(plan, *given)

    kernels = Form(attend, lambda *_: True, lambda *_: "", "cpu")
    monkeypatch.setitem(FORMS, "windows.attend", kernels)
    return computed


def patch_pytorch(model):
    return others.patch_backend(model, attention.attention_pytorch)


@pytest.mark.parametrize(
    ("other", "precision", "said"),
    [
        (others.patch_sage, "int8", "in INT8, as SageAttention (KJNodes) computes"),
        (others.patch_comfy_kitchen, "int8", "in INT8, as Model Attention Backend computes"),
        (patch_pytorch, "exact", "beside Model Attention Backend"),
    ],
)
@pytest.mark.parametrize("order", ["before", "after"])
def test_windows_round_where_the_backend_beside_them_does(
    other, precision, said, order, setter, windows, token_downsample, messages
):
    RUN.sample(put(order, token_downsample, other), WAN)
    assert {*windows} == {precision}
    assert messages()[0].endswith(f"keys, in local windows {said}.")


@pytest.mark.parametrize(
    ("asked", "options", "precision"),
    [
        ("attention_comfy_kitchen_int8", {}, "int8"),
        ("attention_sage", {}, "int8"),
        ("attention_sage", {"low_precision_attention": False}, "exact"),
        ("attention_flash", {}, "exact"),
    ],
)
def test_windows_round_where_comfyuis_own_attention_does(asked, options, precision):
    backend = Backend(Mock(__name__=asked), None)
    assert backend.find_precision(options) == precision


def test_windows_round_where_a_checkpoint_asks_for_it(
    prefer, windows, token_downsample, messages, monkeypatch
):
    monkeypatch.setattr(backend_speeds, "HALF", (torch.float32,))  # of the small models
    kernel = others.make_comfy_kitchen()
    RUN.sample(token_downsample(prefer(WAN.build(), kernel)), WAN)
    assert {*windows} == {"int8"}
    assert "in INT8, as ComfyUI's INT8 attention computes" in messages()[0]


def test_windows_of_a_unet_round_too(windows, unet, token_downsample, denoise):
    model = others.patch_sage(token_downsample(unet("SD15"), local_window="8"))
    denoise(model, size=(64, 64), steps=1)
    assert {*windows} == {"int8"}


def put(order, ours, other):
    model = WAN.build()
    return ours(other(model)) if order == "before" else other(ours(model))


class ComfyAttention(nn.Module):
    """As in newer versions of ComfyUI: what a checkpoint asks for in a layer."""

    def __init__(self, function):
        super().__init__()
        self.function = function


@pytest.fixture
def prefer(monkeypatch):
    """Let the blocks of a model ask for functions in turn."""

    def ask(model, *functions):
        for number, block in enumerate(model.model.diffusion_model.blocks):
            layer = ComfyAttention(functions[number % len(functions)])
            monkeypatch.setattr(block, "comfy_attention", layer, raising=False)
        return model

    return ask


def test_the_attention_that_a_checkpoint_asks_for_computes_what_is_not_reduced(
    prefer, token_downsample, messages
):
    kernel = Mock(side_effect=others.attend_in_int8)
    model = prefer(WAN.build(), kernel)
    RUN.sample(token_downsample(model, end_percent=0.3), WAN)
    blocks = len(model.model.diffusion_model.blocks)
    # Both kinds of attention in the second step, cross-attention alone in the first.
    assert kernel.call_count == 3 * blocks
    assert len(messages()) == 2, "what was reduced, and in which part of the schedule"


def test_a_checkpoint_that_asks_for_several_gets_comfyuis_and_the_node_says_so(
    prefer, token_downsample, messages
):
    kernel = Mock(side_effect=others.attend_in_int8)
    RUN.sample(token_downsample(prefer(WAN.build(), kernel, None)), WAN)
    assert not kernel.called
    assert any("the attention that the checkpoint asks for" in said for said in messages())
