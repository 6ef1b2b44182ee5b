"""Attention that is not the picture's own, and models out of reach."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from math import prod

import pytest
import torch
from support.attention_record import AttentionRecord
from support.small_models import IMAGES, UNREACHED, VIDEOS, SampleRequest, each

REACHED = (*IMAGES, *VIDEOS)
RUN = SampleRequest(steps=1)
NO_OPTIONS = ("PixArt", "HunyuanDiT", "ERNIE-Image", "SeedVR2")
CROSS_ATTENTION = [
    family for family in VIDEOS if not family.name.startswith(("Hunyuan", "Mochi", "Cog", "Mini"))
]


@pytest.fixture(params=["merge", "downsample"])
def node(request, token_merge, token_downsample):
    patch = token_merge if request.param == "merge" else token_downsample
    return partial(patch, local_window="off")


@pytest.mark.parametrize("family", each(CROSS_ATTENTION))
def test_cross_attention_to_a_prompt_as_long_as_the_picture_keeps_its_keys(family, node):
    """Its lengths are those of self-attention then."""
    usual = record_call(family.build(), family, RUN)
    cross = [n for n, call in enumerate(usual.asked) if call.lengths[0] != call.lengths[1]]
    longest = max(call.lengths[0] for call in usual.asked)
    record = record_call(node(family.build()), family, replace(RUN, text=longest))
    for n in cross:
        asked, reached = record.asked[n], record.reached[n]
        assert torch.equal(reached.k[..., : asked.k.shape[3]], asked.k)


def record_call(model, family, run):
    record = AttentionRecord()
    run.sample(record.watch(model), family)
    return record


@pytest.mark.parametrize("name", ["Boogu", "Boogu with references"])
def test_refiners_are_not_reduced_beside_blocks_that_read_the_picture_alone(name, node):
    """A prompt as long as the picture and its references has the same refiners' lengths."""
    (family,) = (family for family in IMAGES if family.name == name)
    alone = prod(family.grid) + RUN.reference_tokens(family)
    run = replace(RUN, text=alone)
    record = record_call(node(family.build()), family, run)
    lengths = [call.lengths[0] for call in record.asked]
    first = lengths.index(2 * alone)
    assert alone in lengths[:first]
    assert alone in lengths[first:]
    for n, (asked, reached) in enumerate(zip(record.asked, record.reached, strict=True)):
        assert torch.equal(reached.k[..., : asked.k.shape[3]], asked.k) is (n < first)


def test_a_prompt_is_found_among_keys_that_are_kept_from_the_first_step(node):
    """HiDream-O1 computes the prompt's keys once in a run."""
    (family,) = (family for family in IMAGES if family.name == "HiDream-O1")
    record = record_call(node(family.build()), family, SampleRequest(steps=3))
    lengths = [call.lengths for call in record.reached]
    assert lengths == lengths[:3] * 3
    for asked, reached in zip(record.asked, record.reached, strict=True):
        assert asked.lengths == (49, 55)
        assert reached.lengths[1] < 55
        assert torch.equal(reached.k[:1, :, :7, : asked.k.shape[3]], asked.k[:, :, :7])


@pytest.mark.parametrize("family", UNREACHED, ids=str)
def test_a_family_out_of_reach_passes_through_with_one_warning(family, node, caplog):
    with caplog.at_level(logging.WARNING, logger="token_merge"):
        model = node(family.build())
        picture = RUN.sample(model, family)
    assert torch.equal(picture, RUN.sample(family.build(), family))
    (said,) = [r.message for r in caplog.records if r.name == "token_merge"]
    assert family.name.split("-")[0].split(" ")[0].lower() in said.lower()


@pytest.mark.parametrize("family", [f for f in UNREACHED if f.name in NO_OPTIONS], ids=str)
def test_no_other_attention_function_reaches_some_families(family):
    """A later ComfyUI that hands them transformer_options fails here."""
    assert record_call(family.build(), family, RUN).asked == []
