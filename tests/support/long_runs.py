"""What the long runs on a server share: prompts of many kinds, and what they leave."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import psutil
from safetensors.torch import load_file
from torch import Tensor

from devtools.client import Client, Prompt
from devtools.graph import OURS
from devtools.server import Server

from .prompts import make_prompt

SIZES = ((64, 64), (96, 64), (128, 96), (72, 104), (128, 128))
MODELS = ("demo", "unet", "flux", "wan")
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "TokenMerge": [{}, {"ratio": 0.7}],
    "TokenDownsample": [{}, {"local_window": "8"}],
    "TokenMergeAdvanced": [{"matching": "global"}, {"matching": "random", "merge_mlp": True}],
    "TokenDownsampleAdvanced": [{"method": "area"}, {"local_window": "off"}],
}
OF_A_ROUND = 20
"""A round has so many prompts, all of them different."""

NUMBERS = count()


def list_prompts(*, unpatched: bool = False, **values: Any) -> list[Prompt]:
    """A round: four models, each with five sizes and every node.

    unpatched: without our nodes. values: further ones of ``make_prompt``.
    """
    prompts = []
    for row, model in enumerate(MODELS):
        for column, size in enumerate(SIZES):
            kind = OURS[(row + column) % len(OURS)]
            made = {"model": model, "size": size, **values}
            inputs = {} if unpatched else SETTINGS[kind][column % 2]
            prompts.append(make_prompt(None if unpatched else kind, **made, **inputs))
    return prompts


def take_prompts(wanted: int, **values: Any) -> list[Prompt]:
    """As many of a round, each on another model than the one before, and again from the first."""
    prompts = list_prompts(**values)
    rows, columns = len(MODELS), len(SIZES)
    return [prompts[(number * columns + number // rows) % len(prompts)] for number in range(wanted)]


def run_queued(client: Client, prompts: list[Prompt]) -> None:
    """Queue all prompts, then wait for each."""
    for identity in [client.submit(prompt) for prompt in prompts]:
        client.finish(identity)


def find_leftovers(client: Client) -> dict[str, int]:
    """Objects of finished runs that are alive in the server.

    Afterwards its garbage is collected, and freed memory is back at the system.
    """
    ask = {"1": {"class_type": "TokenMergeLeftovers", "inputs": {"number": next(NUMBERS)}}}
    (text,) = client.run(ask).texts
    found: dict[str, int] = json.loads(text)
    return found


def read_memory(server: Server) -> float:
    """Resident memory of ComfyUI's process, in MiB."""
    return psutil.Process(server.pid).memory_info().rss / 2**20


def sample(client: Client, base: Path, prompt: Prompt) -> Tensor:
    """The latent that a prompt of ``make_prompt`` gives."""
    name = f"sample-{next(NUMBERS)}"
    saving = {"class_type": "SaveLatent", "inputs": {"samples": ["6", 0], "filename_prefix": name}}
    client.run({**prompt, "7": saving})
    (file,) = (base / "output").glob(f"{name}_*.latent")
    return load_file(file)["latent_tensor"]
