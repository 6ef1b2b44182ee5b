"""Exact near keys in a UNet, where they are off unless asked for, and beside other settings."""

import pytest
import torch


def test_it_brings_a_unets_picture_nearer_to_plain(unet, token_downsample, denoise):
    plain = denoise(unet("SD15"))
    error = [
        (denoise(token_downsample(unet("SD15"), factor=4.0, local_window=side)) - plain).norm()
        for side in ("off", "8")
    ]
    assert error[1] < error[0]


def test_auto_is_off_on_unets(unet, token_downsample, denoise):
    auto, off = (
        denoise(token_downsample(unet("SD15"), local_window=side)) for side in ("auto", "off")
    )
    assert torch.equal(auto, off)


def test_auto_is_12_on_transformers(flux, token_downsample, denoise):
    size = (70, 70)  # 35 x 35 tokens
    auto, twelve, off = (
        denoise(token_downsample(flux, local_window=side), size=size, steps=1)
        for side in ("auto", "12", "off")
    )
    assert torch.equal(auto, twelve)
    assert not torch.equal(auto, off)


def test_the_run_says_how_many_keys_a_query_reads(unet, token_downsample, denoise, messages):
    denoise(token_downsample(unet("SD15"), local_window="8"))
    # 64 near keys, 32 in line with the box along each axis, and 8 elsewhere.
    assert messages() == ["Token Downsample: 3 layers: 256 tokens, attention reads 136 keys."]


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
        "Token Merge: 3 layers: 256 tokens, attention computes 128 queries and reads 128 keys.",
    ]


def test_the_attention_of_another_node_is_called_without_a_window(
    unet, token_downsample, denoise, messages
):
    def of_another_node(attention, *args, **kwargs):
        return attention(*args, **kwargs)

    model = unet("SD15").clone()
    model.model_options["transformer_options"]["optimized_attention_override"] = of_another_node
    picture = denoise(token_downsample(model, local_window="8"))
    assert torch.equal(picture, denoise(token_downsample(unet("SD15"))))
    assert any("another node sets the attention function" in each for each in messages())


@pytest.mark.parametrize("factor_level_2", [1.0, 2.0])
def test_both_resolutions_of_a_unet_have_windows(
    factor_level_2, unet, token_downsample, denoise, messages
):
    model = token_downsample(unet("SD15"), factor_level_2=factor_level_2, local_window="8")
    denoise(model)
    assert len(messages()) == (2 if factor_level_2 > 1 else 1)
