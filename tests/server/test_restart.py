"""A server that is started anew gives the same latents, to the bit."""

from __future__ import annotations

import torch
from support.long_runs import sample
from support.prompts import make_prompt
from torch import Tensor

from devtools.client import Client
from devtools.server import Server, running

# The simple nodes, on the small trained UNet and Flux.
PROMPTS = [
    make_prompt(kind, model=model, size=(96, 64), steps=2)
    for model in ("unet", "flux")
    for kind in ("TokenMerge", "TokenDownsample")
]


def sample_all(server: Server, client: Client) -> list[Tensor]:
    return [sample(client, server.base, prompt) for prompt in PROMPTS]


def test_latents_are_the_same_after_a_restart(server, client, tmp_path):
    start = len(server.log.read_text())
    first = sample_all(server, client)
    said = server.log.read_text()[start:]
    assert said.count(", attention computes ") == said.count(", attention reads ") == 2
    again = sample_all(server, client)
    with running(tmp_path) as another:
        connection = Client(another)
        restarted = sample_all(another, connection)
        connection.close()
    for latents in zip(first, again, restarted, strict=True):
        assert latents[0].std() > 0.1
        assert all(torch.equal(latents[0], latent) for latent in latents[1:])
