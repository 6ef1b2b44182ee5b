"""Two clients at once: each gets what it would get alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from support.fuzzing import SOAK
from support.long_runs import find_leftovers, sample, take_prompts

from devtools.client import Client

PROMPTS = (SOAK.cases or 4) // 2
"""Each client has so many."""


def sample_all(server, prompts):
    client = Client(server)
    try:
        return [sample(client, server.base, prompt) for prompt in prompts]
    finally:
        client.close()


@pytest.mark.thorough
def test_each_client_gets_its_own_latents(server, client):
    of_one, of_other = take_prompts(PROMPTS), take_prompts(PROMPTS, seed=7)[::-1]
    with ThreadPoolExecutor(2) as pool:
        together = [pool.submit(sample_all, server, each) for each in (of_one, of_other)]
        found = [latent for each in together for latent in each.result()]
    alone = sample_all(server, [*of_one, *of_other])
    assert all(map(torch.equal, found, alone))
    assert find_leftovers(client) == {}
