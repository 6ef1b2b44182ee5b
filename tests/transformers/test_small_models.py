"""The small models work in plain ComfyUI; without that no other test here means anything."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from support.small_models import IMAGES, UNREACHED, VIDEOS, SampleRequest

ALL = (*IMAGES, *VIDEOS, *UNREACHED)


@pytest.mark.parametrize("family", ALL, ids=str)
def test_plain_sampling_is_finite_and_keeps_the_shape(family):
    run = SampleRequest(cfg=3.0 if family.batches else 1.0)
    picture = run.sample(family.build(), family)
    assert picture.shape == run.latent(family).shape
    assert torch.isfinite(picture).all()
    assert picture.std() > 0.1


@cache
def plain(family):
    return SampleRequest().sample(family.build(), family)


@pytest.mark.parametrize("family", ALL, ids=str)
def test_every_input_matters(family):
    """Else it would not show in the picture when one of them is mishandled."""
    others = [SampleRequest(prompt_seed=4)]
    if family.references:
        others.append(SampleRequest(reference_seed=5))
    for other in others:
        assert (other.sample(family.build(), family) - plain(family)).abs().max() > 1e-4


@pytest.mark.parametrize("family", ALL, ids=str)
def test_every_latent_cell_depends_on_distant_ones(family):
    """Else attention would not matter to the picture, and reducing its tokens neither."""
    noise = SampleRequest().latent(family)
    noise[..., -1] += 1
    changed = SampleRequest().sample(family.build(), family, noise=noise)
    assert ((plain(family) - changed)[..., 0].abs() > 1e-5).any()
