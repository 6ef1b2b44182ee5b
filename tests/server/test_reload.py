"""After all models were unloaded, a prompt gives what it gave before."""

from __future__ import annotations

import pytest
import torch
from support.fuzzing import SOAK
from support.long_runs import find_leftovers, sample, take_prompts


@pytest.mark.thorough
def test_unloaded_models_are_loaded_again(client, server):
    for prompt in take_prompts(SOAK.cases or 1):
        before = sample(client, server.base, prompt)
        client.free()
        assert find_leftovers(client) == {}
        assert torch.equal(sample(client, server.base, prompt), before)
