"""A ComfyUI that tells nodes too little of a model: it is left as it is, and the log says why.

So some versions are; a later one seems so where it tells things by other names.
"""

from __future__ import annotations

import logging

import pytest
import torch
from support.small_models import IMAGES, VIDEOS, SampleRequest
from token_merge.nodes.hooks.transformer import call

from benchmarks.random_models import build_model

FAMILIES = {family.name: family for family in (*IMAGES, *VIDEOS)}
RUN = SampleRequest(steps=1)


@pytest.fixture
def check(token_merge, token_downsample, caplog):
    """``check(name, reason)``"""

    def check_both(name, reason):
        family = FAMILIES[name]
        model = build_model(family.config, family.settings)
        unpatched = RUN.sample(model, family)
        for node in (token_merge, token_downsample):
            caplog.clear()
            with caplog.at_level(logging.INFO, logger="token_merge"):
                assert torch.equal(RUN.sample(node(model), family), unpatched)
            assert reason in caplog.text

    return check_both


@pytest.mark.parametrize("name", ["Flux Kontext", "Qwen-Image Edit"])
def test_where_the_references_are(name, check, monkeypatch):
    monkeypatch.setattr(call, "REFERENCES_KEY", "another name")
    check(name, "this ComfyUI does not tell where its references are")


@pytest.mark.parametrize("name", ["Anima", "Cosmos Predict2"])
def test_which_block_is_running(name, check, monkeypatch):
    monkeypatch.setattr(call, "BLOCK_KEY", "another name")
    check(name, "its attention calls do not tell which block is running")
