"""Queued prompts of changing sizes, settings and models, and the server's memory after them."""

from __future__ import annotations

from statistics import median

import pytest
from support.fuzzing import SOAK
from support.long_runs import (
    OF_A_ROUND,
    find_leftovers,
    list_prompts,
    read_memory,
    run_queued,
    take_prompts,
)

from devtools.client import Client
from devtools.server import running

pytestmark = pytest.mark.thorough
MOST = 1.02
"""Memory in the later half of the rounds is at most so many times that in the earlier half. The
first round, which loads the models, is in neither."""


def test_queued_prompts_are_all_run_and_leave_nothing(client):
    run_queued(client, take_prompts(4))
    assert find_leftovers(client) == {}


@pytest.mark.skipif(not SOAK.cases, reason="takes minutes: python -m devtools soak queue")
@pytest.mark.parametrize("unpatched", [False, True], ids=["ours", "unpatched"])
def test_memory_stays_where_it_is_after_the_first_round(unpatched, tmp_path):
    """It is read after each round, when the queue is empty and freed memory is back at the
    system.
    """
    found = []
    with running(tmp_path) as server:
        client = Client(server)
        for number in range(max(3, SOAK.cases // OF_A_ROUND)):
            run_queued(client, list_prompts(unpatched=unpatched, seed=number))
            assert find_leftovers(client) == {}
            found.append(read_memory(server))
        client.close()
    name = "unpatched" if unpatched else "with our nodes"
    readings = ", ".join(f"{each:.0f}" for each in found)
    SOAK.notes.append(f"MiB after each round of {OF_A_ROUND} prompts, {name}: {readings}")
    later = found[1:]
    half = len(later) // 2
    assert median(later[half:]) <= MOST * median(later[:half])
