"""A reference is never taken for the picture: sequences are as long as the model says, or left."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
import torch
from support.attention_record import AttentionRecord
from support.small_models import IMAGES, SampleRequest
from support.small_models.frames_behind import MING_IMAGE, UNTOLD
from support.small_models.qwen_image_21 import QWEN_IMAGE_21, QWEN_IMAGE_21_EDIT
from support.small_models.small_model import References

RUN = SampleRequest.with_tokens(MING_IMAGE, 16, 16, steps=1)


@pytest.fixture(params=["merge", "downsample"])
def node(request, tome, token_downsample):
    return tome if request.param == "merge" else token_downsample


def test_tokens_that_nothing_tells_of_leave_a_model_alone_with_their_numbers(node, caplog):
    """Of 503 tokens the first 247 would be taken for the prompt, where 7 are."""
    with caplog.at_level(logging.INFO, logger="token_merge"):
        picture = RUN.sample(node(UNTOLD.build()), UNTOLD)
    assert torch.equal(picture, RUN.sample(UNTOLD.build(), UNTOLD))
    said = "3 layers skipped: its 503 tokens do not fit the 16x16 tokens of the picture"
    assert f"{said} and the 7 before it" in caplog.text


def test_references_behind_the_picture_stay_where_the_model_tells_of_them(tome):
    record = AttentionRecord()
    RUN.sample(record.watch(tome(MING_IMAGE.build())), MING_IMAGE)
    calls = [
        (asked, reached)
        for asked, reached in zip(record.asked, record.reached, strict=True)
        if asked.lengths == (503, 503)
    ]
    assert len(calls) == 3
    for asked, reached in calls:
        channels = asked.k.shape[3]
        assert reached.lengths == (503 - 128, 503 - 128)
        assert torch.equal(reached.k[:, :, :7, :channels], asked.k[:, :, :7])
        assert torch.equal(reached.k[:, :, -240:, :channels], asked.k[:, :, -240:])


def test_captions_of_references_are_counted_with_their_padding(tome, caplog):
    """Two references and three captions: 7, 5, 40 and 6 tokens of text become 32, 32, 64, 32."""
    (omni,) = (family for family in IMAGES if family.name == "Z-Image Omni")
    captions = [torch.randn(1, tokens, 24) for tokens in (5, 40, 6)]

    def add_captions(generator, size):
        return {**omni.extras(generator, size), "reference_latents_text_embeds": captions}

    family = replace(omni, extras=add_captions)
    record = AttentionRecord()
    with caplog.at_level(logging.INFO, logger="token_merge"):
        RUN.sample(record.watch(tome(family.build())), family)
    assert "skipped" not in caplog.text
    seen, references = 3 * 32 + 64, 2 * 32  # what SigLIP sees in the first is 70 tokens
    length = 32 + 32 + 64 + 32 + seen + references + 256
    assert [call.lengths[0] for call in record.asked].count(length) == 3
    assert [call.lengths[0] for call in record.reached].count(length - 128) == 3


@pytest.mark.parametrize(
    ("family", "before", "parts"),
    [(QWEN_IMAGE_21, 7, 2), (QWEN_IMAGE_21_EDIT, 7 + 12, 4)],
    ids=str,
)
def test_what_attends_by_itself_before_the_picture_stays(family, before, parts, node, caplog):
    """A stand-in for Qwen-Image 2.1. Its references are half of the picture's tokens together."""
    run = SampleRequest.with_tokens(family, 6, 8, steps=1)
    record = AttentionRecord()
    with caplog.at_level(logging.INFO, logger="token_merge"):
        run.sample(record.watch(node(family.build(), local_window="off")), family)
    assert "skipped" not in caplog.text
    pairs = list(zip(record.asked, record.reached, strict=True))
    assert len(pairs) == 3 * parts
    for number, (asked, reached) in enumerate(pairs, start=1):
        channels = asked.k.shape[3]
        if number % parts:
            assert reached.lengths == asked.lengths
            assert torch.equal(reached.k[..., :channels], asked.k)
        else:
            assert asked.lengths == (48, before + 48)
            assert reached.lengths[1] < before + 48
            assert torch.equal(reached.k[:1, :, :before, :channels], asked.k[:, :, :before])


def test_a_reference_as_large_as_the_picture_is_not_taken_for_it(node):
    """Beside the prompt, such a reference of Qwen-Image 2.1 asks for what a picture alone does."""
    family = replace(QWEN_IMAGE_21_EDIT, references=References(grids=((6, 8),)))
    run = SampleRequest.with_tokens(family, 6, 8, steps=1)
    record = AttentionRecord()
    run.sample(record.watch(node(family.build(), local_window="off")), family)
    asked = [call.lengths for call in record.asked]
    reached = [call.lengths for call in record.reached]
    assert asked[:3] == [(7, 7), (48, 55), (48, 103)]
    assert reached[:2] == asked[:2]
    assert reached[2][1] < 103


def test_references_that_a_model_leaves_out_do_not_keep_it_from_being_reduced(node, caplog):
    """Krea 2 reads them only where a method is given for them."""
    (krea,) = (family for family in IMAGES if family.name == "Krea 2")
    family, run = replace(krea, references=References()), SampleRequest(steps=1)
    assert torch.equal(run.sample(family.build(), family), run.sample(krea.build(), krea))
    with caplog.at_level(logging.INFO, logger="token_merge"):
        picture = run.sample(node(family.build()), family)
    assert "skipped" not in caplog.text
    assert torch.equal(picture, run.sample(node(krea.build()), krea))
    assert not torch.equal(picture, run.sample(krea.build(), krea))
