"""The small models work in plain ComfyUI; without that no other test here means anything."""

from __future__ import annotations

import pytest
import torch
from small_models import IMAGES, UNREACHED, VIDEOS, Run

ALL = (*IMAGES, *VIDEOS, *UNREACHED)


@pytest.mark.parametrize("family", ALL, ids=str)
def test_plain_sampling_is_finite_and_keeps_the_shape(family):
    run = Run(cfg=3.0 if family.batches else 1.0)
    picture = run.sample(family.model(), family)
    assert picture.shape == run.latent(family).shape
    assert torch.isfinite(picture).all()
    assert picture.std() > 0.1


@pytest.mark.parametrize("family", ALL, ids=str)
def test_every_latent_cell_depends_on_distant_ones(family):
    """Else attention would not matter to the picture, and reducing its tokens neither."""
    run = Run()
    noise = run.latent(family)
    other = noise.clone()
    other[..., -1] += 1
    plain, changed = (run.sample(family.model(), family, noise=x) for x in (noise, other))
    assert ((plain - changed)[..., 0].abs() > 1e-5).any()


@pytest.mark.parametrize("family", ALL, ids=str)
def test_prompt_matters(family):
    runs = (Run(prompt_seed=seed) for seed in (2, 4))
    first, second = (run.sample(family.model(), family) for run in runs)
    assert (first - second).abs().max() > 1e-3


@pytest.mark.parametrize("family", [f for f in ALL if f.references], ids=str)
def test_references_matter(family):
    runs = (Run(reference_seed=seed) for seed in (3, 5))
    first, second = (run.sample(family.model(), family) for run in runs)
    assert (first - second).abs().max() > 1e-4
