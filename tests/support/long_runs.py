"""What the long runs on a server share: prompts of many kinds, and what they leave."""

from __future__ import annotations

import json
from itertools import count, cycle, islice, product
from pathlib import Path
from typing import Any

import psutil
from safetensors.torch import load_file
from torch import Tensor

from devtools.client import Client, Prompt
from devtools.server import Server

from .prompts import OURS, make_prompt

SIZES = ((128, 128), (192, 128), (256, 192), (136, 200), (320, 256))
MODELS = ("demo", "unet", "flux", "wan")
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "TokenMerge": [{}, {"ratio": 0.7}],
    "TokenDownsample": [{}, {"local_window": "8"}],
    "TokenMergeAdvanced": [{"matching": "global"}, {"refresh_steps": 2, "merge_mlp": True}],
    "TokenDownsampleAdvanced": [{"method": "area"}, {"local_window": "off"}],
}
OF_A_ROUND = 20
"""Prompts, all of them different."""

NUMBERS = count()


def list_prompts(*, plain: bool = False, **values: Any) -> list[Prompt]:
    """A round: five sizes on four models, with every node and two settings of each.

    plain: without our nodes. values: further ones of ``make_prompt``.
    """
    prompts = []
    for number, (size, model) in enumerate(product(SIZES, MODELS)):
        # Each model has every node, in the sizes one after the other.
        row = number // len(MODELS)
        kind = OURS[(number + row) % len(OURS)]
        made = {"model": model, "size": size, **values}
        inputs = {} if plain else SETTINGS[kind][row % 2]
        prompts.append(make_prompt(None if plain else kind, **made, **inputs))
    return prompts


def take_prompts(wanted: int, **values: Any) -> list[Prompt]:
    """As many of them, from the first again after the last."""
    return list(islice(cycle(list_prompts(**values)), wanted))


def find_leftovers(client: Client) -> dict[str, int]:
    """Objects of finished runs that are alive in the server, after it collected its garbage."""
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
