"""Only the patches that the settings can use are there: each is a break in a compiled model."""

import pytest
from support.installed_patches import OVERRIDE, watch_installed

RESTORED = {"attn1_patch", "attn1_output_patch"}
CROSS = {"attn2_patch", "attn2_output_patch"}


def find_installed(model, denoise) -> set[str]:
    """Names of the patches and of the override with which the UNet or transformer is called."""
    clone, seen = watch_installed(model)
    denoise(clone, steps=3)
    assert all(each == seen[0] for each in seen), "a compiled model keeps what it saw first"
    return seen[0]


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({}, {*RESTORED, OVERRIDE}),
        ({"target": "queries, downsampled keys and values"}, RESTORED),
        ({"proportional_attention": False}, RESTORED),
        ({"target": "queries"}, RESTORED),
        ({"target": "keys and values"}, {*RESTORED, OVERRIDE}),
        ({"target": "keys and values", "proportional_attention": False}, RESTORED),
        ({"merge_cross_attention": True}, {*RESTORED, *CROSS, OVERRIDE}),
        ({"start_percent": 0.5}, {*RESTORED, OVERRIDE}),
    ],
)
def test_token_merge_on_a_unet(inputs, expected, unet, tome, denoise):
    assert find_installed(tome(unet("SD15"), **inputs), denoise) == expected


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({}, RESTORED),
        ({"end_percent": 0.5}, RESTORED),
        ({"method": "stratified"}, RESTORED),
        ({"local_window": "8"}, {*RESTORED, OVERRIDE}),
    ],
)
def test_token_downsample_on_a_unet(inputs, expected, unet, token_downsample, denoise):
    assert find_installed(token_downsample(unet("SD15"), **inputs), denoise) == expected


def test_a_model_without_attention_at_that_resolution_gets_none(unet, token_merge, denoise):
    assert find_installed(token_merge(unet("SDXL"), max_downsample="1"), denoise) == set()


def test_a_transformer_gets_the_override_only(flux, token_downsample, denoise):
    assert find_installed(token_downsample(flux), denoise) == {OVERRIDE}
