"""The small models work in ComfyUI alone; without that no other test here means anything."""

from __future__ import annotations

from dataclasses import fields
from functools import cache

import pytest
import torch
from support.small_models import FEATURED, IMAGES, UNREACHED, VIDEOS, SampleRequest
from token_merge.nodes.hooks.transformer.families import FAMILIES, Family

REACHED = (*IMAGES, *VIDEOS)
RUN = SampleRequest(steps=1)
every_family = pytest.mark.parametrize("family", [*REACHED, *UNREACHED], ids=str)


@cache
def sample(family):
    return RUN.sample(family.build(), family)


@pytest.mark.thorough
@every_family
def test_pictures_are_finite_and_keep_the_shape(family):
    picture = sample(family)
    assert picture.shape == RUN.latent(family).shape
    assert torch.isfinite(picture).all()
    assert picture.std() > 0.1


@pytest.mark.thorough
@every_family
def test_every_input_matters(family):
    """Else it would not show in the picture when one of them is mishandled."""
    others = [SampleRequest(steps=1, prompt_seed=4)]
    if family.references:
        others.append(SampleRequest(steps=1, reference_seed=5))
    for other in others:
        assert (other.sample(family.build(), family) - sample(family)).abs().max() > 1e-4


@pytest.mark.thorough
@every_family
def test_every_latent_cell_depends_on_distant_ones(family):
    """Else attention would not matter to the picture, and reducing its tokens neither."""
    noise = RUN.latent(family)
    noise[..., -1] += 1
    changed = RUN.sample(family.build(), family, noise=noise)
    assert ((sample(family) - changed)[..., 0].abs() > 1e-5).any()


FACTS = [field for field in fields(Family) if field.name != "name"]


@pytest.mark.parametrize("fact", FACTS, ids=lambda field: field.name)
def test_a_featured_family_differs_from_the_usual_layout_in_each_fact(fact):
    """Else a feature of layouts is tried with ``--all`` alone."""
    kinds = [find_layout(family) for family in REACHED if family.name in FEATURED]
    assert len(kinds) == len(FEATURED)
    assert len({getattr(kind, fact.name) for kind in kinds}) > 1


def find_layout(family):
    kind = type(family.build().model.diffusion_model)
    return FAMILIES[f"{kind.__module__}.{kind.__qualname__}"]
