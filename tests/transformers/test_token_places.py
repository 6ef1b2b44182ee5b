"""Where ComfyUI's families keep their tokens: a later ComfyUI that moves them fails here."""

from __future__ import annotations

from math import prod

import pytest
from support.small_models import IMAGES, VIDEOS, SampleRequest
from support.small_models.hidream_o1 import SEEN
from support.token_places import find_places, find_rows_of_token, record_calls

pytestmark = pytest.mark.thorough

REACHED = (*IMAGES, *VIDEOS)
RUN = SampleRequest(steps=1)
MIXED_BEFORE = ("Stable Cascade C",)
"""Convolutions mix the tokens of these before attention."""
ORDER = {
    "Flux": "text picture",
    "Flux Kontext": "text picture reference",
    "Flux 2": "padding text picture",
    "Flux 2 with references": "padding text picture reference",
    "Flux 2 with references at timestep zero": "padding text picture reference",
    "Chroma": "text picture",
    "Chroma Radiance": "text picture",
    "SD3": "text picture",
    "SD3.5 medium": "text picture",
    "Qwen-Image": "text picture",
    "Qwen-Image Edit": "text picture reference",
    "Qwen-Image Layered": "text picture reference",
    "Lumina 2": "text picture",
    "Z-Image": "text padding picture padding",
    "Z-Image with references": "padding text padding "
    "reference padding reference padding picture padding",
    "Z-Image Omni": "padding text padding text padding "
    "reference padding reference padding picture padding",
    "Z-Image in pixel space": "text padding picture padding",
    "Z-Image in pixel space with references": "padding text padding "
    "reference padding reference padding picture padding",
    "HiDream-I1": "picture text",
    "HiDream-E1": "picture reference " * 6 + "text",
    "HiDream-O1": "text padding picture",
    "HiDream-O1 with a reference": "text padding reference padding text padding picture reference",
    "OmniGen2": "text picture",
    "OmniGen2 with references": "text reference picture",
    "Boogu": "text picture",
    "Boogu with references": "text reference picture",
    "AuraFlow": "padding text picture",
    "Krea 2": "text picture",
    "Krea 2 with references": "text picture reference",
    "Lens": "picture text",
    "MageFlow": "text picture",
    "MageFlow with references": "text picture reference",
    "JoyImage": "picture text",
    "JoyImage with references": "picture reference text",
    "HunyuanImage 2.1": "text picture",
    "HunyuanImage 2.1 with letters": "text picture",
    "Stable Cascade C": "picture text padding",
    "Ideogram 4": "text picture",
    "PixelDiT": "text picture",
    "PiD": "text picture",
    "Wan 2.1 T2V": "picture",
    "Wan 2.1 I2V": "picture",
    "Wan 2.2 TI2V": "picture",
    "Wan with a reference first": "reference picture",
    "Wan with references last": "picture reference",
    "Wan with frames behind": "picture reference",
    "Wan VACE": "picture",
    "Wan Camera": "picture",
    "Wan HuMo": "picture reference",
    "Wan S2V": "picture reference text",
    "Wan Animate": "picture",
    "Wan SCAIL": "reference picture text",
    "Wan SCAIL 2": "reference picture text",
    "WanDancer": "picture",
    "HunyuanVideo": "text picture",
    "HunyuanVideo with a reference": "text reference picture",
    "HunyuanVideo 1.5": "text picture",
    "LTXV": "picture",
    "LTXV with guides": "picture reference",
    "LTX-2": "picture",
    "LTX-2 with guides": "picture reference",
    "LTX-2.3": "picture",
    "Cosmos": "picture",
    "Cosmos Predict2": "picture",
    "Anima": "picture",
    "Mochi": "picture text",
    "CogVideoX": "text picture",
    "CogVideoX 1.5": "text picture",
    "Kandinsky 5": "picture",
    "Kandinsky 5 Image": "picture",
    "MiniMax H3": "text picture",
    "MiniMax H3 with references": "text picture",
}


@pytest.mark.parametrize("family", REACHED, ids=str)
def test_main_blocks_hold_their_tokens_in_the_known_order(family):
    places = find_places(family, RUN)
    assert " ".join(kind for kind, _ in places.segments) == ORDER[family.name]
    assert len(places.rows("picture")) == prod(family.token_grid())
    assert len(places.rows("reference")) == RUN.reference_tokens(family) + (
        SEEN if family.name == "HiDream-O1 with a reference" else 0
    )


@pytest.mark.parametrize("family", REACHED, ids=str)
def test_picture_tokens_lie_in_raster_order(family):
    grid = family.token_grid()
    beside = 2 if family.name == "HiDream-E1" else 1  # its reference prolongs every line
    unpatched = record_calls(family, RUN)
    corner, middle, end = (
        tuple(place(side) for side in grid)
        for place in (lambda side: 0, lambda side: side // 2, lambda side: side - 1)
    )
    start, *others = find_rows_of_token(family, RUN, unpatched, corner)
    assert bool(others) is (family.name in MIXED_BEFORE)
    for token in (middle, end):
        raster = 0
        for n, side in zip(token, (*grid[:-1], grid[-1] * beside), strict=True):
            raster = raster * side + n
        assert find_rows_of_token(family, RUN, unpatched, token)[0] == start + raster
