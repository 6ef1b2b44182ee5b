"""A compiled model decides anew in every step and does not keep what it saw first.

ComfyUI's TorchCompileModel drops all guards on transformer_options, so a patch that were there
in some steps only would be compiled in or left out for good.
"""

from functools import partial

import pytest
import torch
from support.compiling import compiled

from benchmarks import ours

pytestmark = [pytest.mark.usefixtures("compiling_as_on_a_gpu"), pytest.mark.thorough]


def test_a_percent_range_begins_in_a_unet_that_is_compiled_last(unet, token_merge, denoise):
    model = token_merge(unet("SD15 shallow"), start_percent=0.5)
    expected = denoise(model, steps=3)
    torch.testing.assert_close(denoise(compiled(model), steps=3), expected, rtol=1e-4, atol=1e-3)


def test_a_percent_range_ends_in_a_transformer_that_is_compiled_first(
    flux, token_downsample, denoise
):
    expected = denoise(token_downsample(flux, end_percent=0.5), steps=3)
    assert not torch.equal(expected, denoise(flux, steps=3))
    model = token_downsample(compiled(flux), end_percent=0.5)
    torch.testing.assert_close(denoise(model, steps=3), expected, rtol=1e-4, atol=1e-3)


def test_early_steps_of_a_compiled_transformer_are_exact(flux, denoise):
    apply = partial(ours.apply, "TokenDownsample")
    expected = denoise(apply(flux), steps=3)
    assert not torch.equal(expected, denoise(flux, steps=3))
    found = denoise(apply(compiled(flux)), steps=3)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)
