"""A token that stands for several weighs as much as they did, whichever way the weight gets in."""

import logging
from functools import partial

import pytest
import torch
from support.unet_sampling import sample
from token_merge.nodes.hooks.attention import backend


@pytest.fixture(params=["merge", "downsample"])
def node(request, token_merge, token_downsample):
    """Local windows have weights of their own, so there are none here."""
    windowless = partial(token_downsample, local_window="off")
    return token_merge if request.param == "merge" else windowless


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    monkeypatch.setattr(backend, "masks_are_free", lambda device: False)


@pytest.mark.parametrize("target", ["queries, keys and values", "keys and values"])
def test_channels_and_mask_give_the_same_picture_of_a_unet(
    target, unet, token_merge, denoise, request
):
    model = token_merge(unet("SD15"), target=target)
    by_mask = denoise(model, steps=1)
    request.getfixturevalue("as_on_a_gpu")
    torch.testing.assert_close(denoise(model, steps=1), by_mask, atol=1e-3, rtol=1e-3)


def test_it_brings_a_unets_picture_closer_to_the_original(unet, tome, denoise):
    unpatched = denoise(unet("SD15"))
    error = [
        (denoise(tome(unet("SD15"), proportional_attention=weighed)) - unpatched).norm().item()
        for weighed in (False, True)
    ]
    assert error[1] < error[0]


def test_queries_alone_leave_a_unets_keys_as_they_weigh(unet, token_merge, denoise):
    weighed, not_weighed = (
        denoise(token_merge(unet("SD15"), target="queries", proportional_attention=weighed))
        for weighed in (True, False)
    )
    assert torch.equal(weighed, not_weighed)


def test_a_unets_attention_by_another_node_keeps_its_arguments(unet, token_merge, denoise):
    dimensions = set()

    def of_another_node(attention, q, k, v, heads, mask=None, **kwargs):
        dimensions.add(q.ndim)
        return attention(q, k, v, heads, mask, **kwargs)

    model = unet("SD15").clone()
    options = model.model_options["transformer_options"]
    options["optimized_attention_override"] = of_another_node
    assert torch.equal(denoise(token_merge(model)), denoise(token_merge(unet("SD15"))))
    assert dimensions == {3}


def test_sizes_that_self_attention_did_not_take_are_for_no_other_attention(unet, token_merge):
    """The prompt has as many tokens as keys are left, and another node computes attention."""
    masks = []

    def note(attention, q, k, v, heads, mask=None, **kwargs):
        masks.append(mask)
        return attention(q, k, v, heads, mask, **kwargs)

    model = unet("SD15").clone()
    for name, _ in model.model.named_modules():
        if name.endswith("attn1"):
            model.add_object_patch(f"{name}.forward", lambda x, **_: torch.zeros_like(x))
    model.model_options["transformer_options"]["optimized_attention_override"] = note
    sample(token_merge(model, target="keys and values"), prompt_tokens=128)
    assert masks
    assert all(mask is None for mask in masks)


def test_channels_and_mask_give_the_same_picture(node, flux, denoise, request):
    model = node(flux)
    by_mask = denoise(model)
    request.getfixturevalue("as_on_a_gpu")
    torch.testing.assert_close(denoise(model), by_mask, atol=1e-4, rtol=1e-4)


def test_it_brings_the_picture_closer_to_the_original(node, flux, denoise):
    unpatched = denoise(flux)
    error = [
        (denoise(node(flux, proportional_attention=weighed)) - unpatched).norm().item()
        for weighed in (False, True)
    ]
    assert error[1] < error[0]


def test_an_attention_function_of_another_node_gets_no_more_channels(
    as_on_a_gpu, flux, token_merge, denoise, caplog
):
    channels = set()

    def of_another_node(attention, q, k, v, *args, **kwargs):
        channels.add(q.shape[-1])
        assert kwargs["mask"] is None
        return attention(q, k, v, *args, **kwargs)

    model = flux.clone()
    options = model.model_options["transformer_options"]
    options["optimized_attention_override"] = of_another_node
    with caplog.at_level(logging.INFO, logger="token_merge"):
        denoise(token_merge(model, local_window="off"))
    assert channels == {16}
    assert "proportional_attention is left out where another node" in caplog.text
