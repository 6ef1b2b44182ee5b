"""On a GPU, no family makes ours wait for it, copy to or from it, or mix it with the CPU."""

from __future__ import annotations

from functools import partial

import pytest
from support.other_device_run import check_stays, run_on_both
from support.small_models import IMAGES, VIDEOS, SampleRequest

REACHED = (*IMAGES, *VIDEOS)


@pytest.mark.parametrize("family", REACHED, ids=str)
def test_a_call_stays_on_its_device(family, token_merge, token_downsample, monkeypatch):
    """The nodes in turn; tests/nodes has each of their settings on three models."""
    node = (token_merge, token_downsample)[REACHED.index(family) % 2]
    model = node(family.build())
    sample = partial(SampleRequest(steps=1).sample, family=family)
    check_stays(run_on_both(model, sample, monkeypatch), tolerance=1e-3)
