"""A compiled model decides anew in every step and does not keep what it saw first.

ComfyUI's TorchCompileModel drops all guards on transformer_options, so a patch that were there
in some steps only would be compiled in or left out for good.
"""

import pytest
import torch
from support.compiling import compiled

pytestmark = pytest.mark.usefixtures("compiling_as_on_a_gpu")


@pytest.mark.parametrize(
    ("inputs", "order"),
    [
        ({"start_percent": 0.5}, "compiled last"),
        ({"end_percent": 0.5, "merge_mlp": True, "refresh_steps": 2}, "compiled first"),
    ],
    ids=["late", "early"],
)
def test_a_window_opens_and_closes_inside_a_compiled_model(
    inputs, order, unet, token_merge, denoise
):
    expected = denoise(token_merge(unet("SD15 shallow"), **inputs), steps=3)
    if order == "compiled last":
        model = compiled(token_merge(unet("SD15 shallow"), **inputs))
    else:
        model = token_merge(compiled(unet("SD15 shallow")), **inputs)
    torch.testing.assert_close(denoise(model, steps=3), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("node_name", "window", "order"),
    [
        ("token_merge", {"start_percent": 0.5}, "compiled first"),
        ("token_downsample", {"end_percent": 0.5}, "compiled last"),
    ],
)
def test_a_window_opens_and_closes_inside_a_compiled_transformer(
    node_name, window, order, flux, denoise, request
):
    node = request.getfixturevalue(node_name)
    expected = denoise(node(flux, **window), steps=3)
    assert not torch.equal(expected, denoise(flux, steps=3))
    last = order == "compiled last"
    model = compiled(node(flux, **window)) if last else node(compiled(flux), **window)
    torch.testing.assert_close(denoise(model, steps=3), expected, rtol=1e-4, atol=1e-3)
