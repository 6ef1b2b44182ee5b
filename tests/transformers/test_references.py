"""A reference is never taken for the picture: sequences are as long as the model says, or left."""

from __future__ import annotations

import logging

import pytest
import torch
from support.attention_record import AttentionRecord
from support.small_models import SampleRequest
from support.small_models.frames_behind import MING_IMAGE, UNTOLD

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
