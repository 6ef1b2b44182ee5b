"""Exact near keys in a UNet, where they are off unless asked for, and beside other settings."""

import pytest
import torch


def test_it_brings_a_unets_picture_closer_to_the_original(unet, token_downsample, denoise):
    unpatched = denoise(unet("SD15"))
    error = [
        (denoise(token_downsample(unet("SD15"), factor=4.0, local_window=side)) - unpatched).norm()
        for side in ("off", "8")
    ]
    assert error[1] < error[0]


@pytest.fixture(params=["merge", "downsample"])
def node(request, token_merge, token_downsample):
    return token_merge if request.param == "merge" else token_downsample


def test_auto_is_off_on_unets(unet, node, denoise):
    auto, off = (denoise(node(unet("SD15"), local_window=side)) for side in ("auto", "off"))
    assert torch.equal(auto, off)


def test_token_merge_has_none_on_unets(unet, token_merge, denoise):
    off, asked_for = (
        denoise(token_merge(unet("SD15"), local_window=side)) for side in ("off", "12")
    )
    assert torch.equal(asked_for, off)


def test_auto_is_12_on_transformers(flux, node, denoise):
    size = (70, 70)  # 35 x 35 tokens
    auto, twelve, off = (
        denoise(node(flux, local_window=side), size=size, steps=1) for side in ("auto", "12", "off")
    )
    assert torch.equal(auto, twelve)
    assert not torch.equal(auto, off)


def test_the_run_says_how_many_keys_a_query_reads(unet, token_downsample, denoise, messages):
    denoise(token_downsample(unet("SD15"), local_window="8"))
    # 64 near keys, 32 in line with the box along each axis, and 8 elsewhere.
    assert messages() == ["Token Downsample: 3 layers: 256 tokens, attention reads 136 keys."]


def test_the_run_says_how_many_queries_read_far_keys(flux, token_merge, denoise, messages):
    denoise(token_merge(flux, ratio=0.5, local_window="8"), size=(70, 70), steps=1)
    # Half of 1,225 tokens and 7 of the prompt.
    assert messages() == [
        "Token Merge: 2 layers: 1,232 tokens, attention computes 619 queries and reads 244 keys."
    ]


@pytest.mark.parametrize(
    "inputs",
    [
        {"target": "queries, keys and values"},
        {"matching": "global"},
        {"proportional_attention": False},
    ],
    ids=str,
)
def test_other_ways_to_merge_have_no_window_and_say_so_where_one_is_asked_for(
    inputs, flux, token_merge, denoise, messages
):
    off, asked_for = (
        denoise(token_merge(flux, local_window=side, **inputs), size=(32, 32), steps=1)
        for side in ("off", "12")
    )
    assert torch.equal(asked_for, off)
    (said,) = (each for each in messages() if "local_window" in each)
    assert "local_window is left out: it needs target" in said


@pytest.mark.parametrize("order", ["merge first", "downsample first"])
def test_merged_queries_leave_none_in_a_unet(
    order, unet, token_merge, token_downsample, denoise, messages
):
    def build(side):
        if order == "merge first":
            merged = token_merge(unet("SD15"), target="queries")
            return token_downsample(merged, local_window=side)
        return token_merge(token_downsample(unet("SD15"), local_window=side), target="queries")

    off = denoise(build("off"))
    assert not any("local_window" in message for message in messages())
    assert torch.equal(denoise(build("8")), off)
    assert any("local_window is left out: Token Merge reduces" in each for each in messages())


def test_it_takes_turns_with_token_merge(unet, tome, token_downsample, denoise, messages):
    model = token_downsample(unet("SD15"), local_window="8", end_percent=0.5)
    denoise(tome(model, start_percent=0.5), steps=4)
    assert messages() == [
        "Token Downsample: 3 layers: 256 tokens, attention reads 136 keys.",
        "Token Downsample: acts from 0% to 50% of the schedule.",
        "Token Merge: 3 layers: 256 tokens, attention computes 128 queries and reads 128 keys.",
        "Token Merge: acts from 50% to 100% of the schedule.",
    ]


def put_override(model):
    """As an unknown node does."""

    def of_another_node(attention, *args, **kwargs):
        return attention(*args, **kwargs)

    clone = model.clone()
    clone.model_options["transformer_options"]["optimized_attention_override"] = of_another_node
    return clone


def test_a_window_that_the_user_sets_is_computed_in_place_of_an_unknown_nodes_attention(
    unet, token_downsample, denoise, messages
):
    picture = denoise(token_downsample(put_override(unet("SD15")), local_window="8"))
    assert any(each.endswith("in local windows in place of another node.") for each in messages())
    assert torch.equal(picture, denoise(token_downsample(unet("SD15"), local_window="8")))


def test_a_model_with_windows_is_left_to_an_unknown_nodes_attention(
    flux, token_merge, denoise, messages
):
    picture = denoise(token_merge(put_override(flux)), size=(32, 32), steps=1)
    assert torch.equal(picture, denoise(flux, size=(32, 32), steps=1))
    said, nothing = messages()
    assert "another node is at work; use one of the two" in said
    assert said.split(" (block")[0].endswith("local_window in Token Merge (Advanced) to a size")
    assert "no layer was reduced" in nothing


@pytest.mark.parametrize("factor_level_2", [1.0, 2.0])
def test_both_resolutions_of_a_unet_have_windows(
    factor_level_2, unet, token_downsample, denoise, messages
):
    model = token_downsample(unet("SD15"), factor_level_2=factor_level_2, local_window="8")
    denoise(model)
    assert len(messages()) == (2 if factor_level_2 > 1 else 1)
