"""A server that is started anew gives the same latents, to the bit."""

from __future__ import annotations

import pytest
import torch
from support.long_runs import sample
from support.prompts import make_prompt
from torch import Tensor

from devtools.client import Client
from devtools.server import Server

# The simple nodes, on the small trained UNet and Flux.
PROMPTS = [
    make_prompt(kind, model=model, size=(96, 64), steps=2)
    for model in ("unet", "flux")
    for kind in ("TokenMerge", "TokenDownsample")
]


def sample_all(server: Server) -> list[Tensor]:
    client = Client(server)
    latents = [sample(client, server.base, prompt) for prompt in PROMPTS]
    client.close()
    return latents


@pytest.mark.thorough
def test_latents_are_the_same_after_a_restart(server, user_server):
    start = len(server.log.read_text())
    first = sample_all(server)
    said = server.log.read_text()[start:]
    assert said.count(", attention computes ") == said.count(", attention reads ") == 2
    restarted = sample_all(user_server)
    assert all(latent.std() > 0.1 for latent in first)
    assert all(map(torch.equal, first, restarted))
