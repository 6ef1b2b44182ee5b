"""Prompts that are stopped while they are sampled leave nothing."""

from __future__ import annotations

import pytest
import torch
from support.fuzzing import SOAK
from support.long_runs import find_leftovers, read_memory, sample, take_prompts
from support.prompts import make_prompt

from devtools.client import RunError


def stop_after(client, steps):
    """Called after each step."""
    done = 0

    def step():
        nonlocal done
        done += 1
        if done == steps:
            client.interrupt()

    return step


@pytest.mark.thorough
def test_stopped_prompts_leave_nothing(client, server):
    whole = make_prompt("TokenMerge", steps=2)
    before = sample(client, server.base, whole)
    memory = []
    for number, prompt in enumerate(take_prompts(SOAK.cases or 2, steps=200)):
        with pytest.raises(RunError, match="interrupted at KSampler"):
            client.run(prompt, stop_after(client, 1 + number % 3))
        memory.append(read_memory(server))
    assert find_leftovers(client) == {}
    assert torch.equal(sample(client, server.base, whole), before)
    SOAK.notes.append("MiB after each interrupt: " + ", ".join(f"{each:.0f}" for each in memory))
