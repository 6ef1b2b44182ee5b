"""A server that is started anew gives the same latents, to the bit."""

from __future__ import annotations

from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from devtools.client import Client, Prompt
from devtools.server import Server, running

SAMPLED: dict[str, Any] = {
    "seed": 1,
    "steps": 2,
    "cfg": 2.0,
    "sampler_name": "euler",
    "scheduler": "normal",
    "denoise": 1.0,
}


def build_graph() -> Prompt:
    """Both nodes, in one half of the schedule each, on the small trained UNet and Flux."""
    prompt: Prompt = {}
    for kind in ("unet", "flux"):
        add = {
            "loader": ("TokenMergeTrainedModel", {"kind": kind}),
            "text": ("CLIPTextEncode", {"text": "a red star", "clip": [f"{kind} loader", 1]}),
            "latent": ("EmptyLatentImage", {"width": 128, "height": 96, "batch_size": 1}),
            "merge": (
                "TokenMerge",
                {
                    "model": [f"{kind} loader", 0],
                    "ratio": 0.5,
                    "start_percent": 0.0,
                    "end_percent": 0.5,
                },
            ),
            "downsample": (
                "TokenDownsample",
                {
                    "model": [f"{kind} merge", 0],
                    "factor": 2.0,
                    "local_window": "auto",
                    "start_percent": 0.5,
                    "end_percent": 1.0,
                },
            ),
            "sampler": (
                "KSampler",
                {
                    **SAMPLED,
                    "model": [f"{kind} downsample", 0],
                    "positive": [f"{kind} text", 0],
                    "negative": [f"{kind} text", 0],
                    "latent_image": [f"{kind} latent", 0],
                },
            ),
            "save": ("SaveLatent", {"samples": [f"{kind} sampler", 0], "filename_prefix": kind}),
        }
        numbers = {f"{kind} {name}": str(len(prompt) + n) for n, name in enumerate(add)}
        for node, inputs in add.values():
            linked = {
                name: [numbers[value[0]], value[1]] if isinstance(value, list) else value
                for name, value in inputs.items()
            }
            prompt[str(len(prompt))] = {"class_type": node, "inputs": linked}
    return prompt


def sample(server: Server, client: Client) -> list[Tensor]:
    """The latents of both models, as they were saved last."""
    client.run(build_graph())
    found = []
    for kind in ("unet", "flux"):
        files = (server.base / "output").rglob(f"{kind}_*.latent")
        newest = max(files, key=lambda path: path.stat().st_mtime_ns)
        found.append(load_file(newest)["latent_tensor"])
    return found


def test_latents_are_the_same_after_a_restart(server, client, tmp_path):
    start = len(server.log.read_text())
    first = sample(server, client)
    said = server.log.read_text()[start:]
    assert said.count(" tokens merged to ") == said.count(" tokens, attention reads ") == 2
    again = sample(server, client)
    with running(tmp_path) as another:
        connection = Client(another)
        restarted = sample(another, connection)
        connection.close()
    for latents in zip(first, again, restarted, strict=True):
        assert latents[0].std() > 0.1
        assert all(torch.equal(latents[0], latent) for latent in latents[1:])
