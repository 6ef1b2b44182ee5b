"""On a GPU, no order of tokens makes ours wait for it, copy to or from it, or mix in the CPU."""

from __future__ import annotations

from functools import partial

import pytest
from support.one_head import compute_one_head_at_a_time
from support.other_device_run import check_stays, run_on_both
from support.small_models import IMAGES, VIDEOS, SampleRequest

ARRANGED = ("Flux Kontext", "HiDream-E1", "HiDream-O1 with a reference", "Stable Cascade C")
"""One is as plans see it, and there is one for each way of arranging the others."""


@pytest.mark.parametrize("family", [each for each in IMAGES if each.name in ARRANGED], ids=str)
@pytest.mark.parametrize("node", ["token_merge", "token_downsample"])
def test_a_call_stays_on_its_device(family, node, request, monkeypatch):
    """tests/nodes has each setting of both nodes on three models."""
    model = request.getfixturevalue(node)(family.build())
    sample = partial(SampleRequest(steps=1).sample, family=family)
    check_stays(run_on_both(model, sample, monkeypatch), tolerance=1e-3)


@pytest.mark.parametrize("family", [IMAGES[0], VIDEOS[0]], ids=str)
@pytest.mark.parametrize("node", ["token_merge", "token_downsample"])
def test_a_call_with_one_head_at_a_time_stays_on_its_device(family, node, request, monkeypatch):
    compute_one_head_at_a_time(monkeypatch)
    model = request.getfixturevalue(node)(family.build(), local_window="off")
    sample = partial(SampleRequest(steps=1).sample, family=family)
    check_stays(run_on_both(model, sample, monkeypatch), tolerance=1e-3)
