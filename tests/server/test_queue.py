"""Queued prompts of changing sizes, settings and models, and the server's memory after them."""

from __future__ import annotations

from statistics import median

import pytest
from support.fuzzing import SOAK
from support.long_runs import OF_A_ROUND, find_leftovers, list_prompts, read_memory, take_prompts

from devtools.client import Client
from devtools.server import running

MOST = 1.02
"""Of the resident memory in the earlier half of the rounds after the first, at most."""


def test_queued_prompts_are_all_run_and_leave_nothing(client):
    prompts = take_prompts(4)
    for identity in [client.submit(prompt) for prompt in prompts]:
        client.finish(identity)
    assert find_leftovers(client) == {}


@pytest.mark.skipif(not SOAK.cases, reason="takes minutes: python -m devtools soak queue")
@pytest.mark.parametrize("plain", [False, True], ids=["ours", "plain"])
def test_memory_stays_where_it_is_after_the_first_round(plain, tmp_path):
    """Read when the queue is empty, after each round of 20 prompts. The garbage is collected then,
    and the C library has given back to the system what it kept of freed memory.
    """
    found = []
    with running(tmp_path) as server:
        client = Client(server)
        for number in range(max(3, SOAK.cases // OF_A_ROUND)):
            prompts = list_prompts(plain=plain, seed=number)
            for identity in [client.submit(prompt) for prompt in prompts]:
                client.finish(identity)
            assert find_leftovers(client) == {}
            found.append(read_memory(server))
        client.close()
    name = "plain" if plain else "with our nodes"
    readings = ", ".join(f"{each:.0f}" for each in found)
    SOAK.notes.append(f"MiB after each round of {OF_A_ROUND} prompts, {name}: {readings}")
    later = found[1:]
    half = len(later) // 2
    assert median(later[half:]) <= MOST * median(later[:half])
