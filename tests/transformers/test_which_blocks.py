"""Attention that is not the picture's own, and models out of reach."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from math import prod

import pytest
import torch
from comfy_extras.nodes_slg import SkipLayerGuidanceDiT
from interplay.other import run_node
from support.attention_record import AttentionRecord
from support.comfyui_version import EARLIER_SOUND, leave_out_before, needs_comfyui
from support.small_models import IMAGES, UNREACHED, VIDEOS, SampleRequest, each

REACHED = (*IMAGES, *VIDEOS)
RUN = SampleRequest(steps=1)
(LTX2,) = (family for family in VIDEOS if family.name == "LTX-2")
VOICE_ALONE = replace(LTX2, name="LTX-2 with a voice but no sound", sound=None)
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


@pytest.mark.parametrize("left_out", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("name", ["SD3.5 medium", "AuraFlow", "LTXV", "LTX-2", VOICE_ALONE.name])
def test_blocks_behind_one_that_is_left_out_keep_the_keys_that_they_have_else(
    name, left_out, token_downsample
):
    """Skip-layer guidance multiplies the difference of both predictions, so that of their errors.

    These models do not tell which block is running.
    """
    if name.startswith("LTX-2"):
        leave_out_before(*EARLIER_SOUND)
    (family,) = (family for family in (*REACHED, VOICE_ALONE) if family.name == name)
    model = token_downsample(family.build(), method="stratified", local_window="off")
    numbers = ", ".join(map(str, left_out))
    guided = run_node(SkipLayerGuidanceDiT, model, 3.0, 0.0, 1.0, numbers, "", 0.0)
    assert_keys_are_the_usual_ones(guided, model, family)


@needs_comfyui("0.33.0", "spatio-temporal guidance in LTX-2")
@pytest.mark.parametrize("blocks", ["0", "1", "0, 1"])
def test_blocks_behind_a_perturbed_one_keep_the_keys_that_they_have_else(blocks, token_downsample):
    from comfy_extras.nodes_lt import LTXVSpatioTemporalGuidance

    (family,) = (family for family in REACHED if family.name == "LTX-2")
    model = token_downsample(family.build(), method="stratified", local_window="off")
    guided = run_node(LTXVSpatioTemporalGuidance, model, 1.0, blocks, 0.0, 1.0)
    assert_keys_are_the_usual_ones(guided, model, family)


def assert_keys_are_the_usual_ones(guided, model, family):
    """A guided model is called once more, with fewer attention calls."""
    kept = list_kept_keys(record_call(guided, family, RUN))
    usual = list_kept_keys(record_call(model, family, RUN))
    assert kept[: len(usual)] == usual
    again = kept[len(usual) :]
    assert 0 < len(again) < len(usual)
    assert again[-1] == usual[-1]
    in_order = iter(usual)
    assert all(each in in_order for each in again)


def list_kept_keys(record):
    """The numbers of the keys that are kept in each reduced call."""
    kept = []
    for asked, reached in zip(record.asked, record.reached, strict=True):
        if reached.lengths[1] < asked.lengths[1] == asked.lengths[0]:
            keys = reached.k[0, 0, :, : asked.k.shape[3]]
            found = (keys[:, None] == asked.k[0, 0][None]).all(dim=2)
            kept.append(found.int().argmax(dim=1).tolist())
    return kept


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
