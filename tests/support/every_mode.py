"""Every way in which our nodes reduce, on the narrow models, and one picture of each."""

from __future__ import annotations

import hashlib
import json
import sys

import comfy.sample
import torch
from comfy.model_patcher import ModelPatcher
from torch import Tensor

from .modes import EVERY_OTHER_OPTION, UNPATCHED
from .modes import MODES as WAYS
from .unet_sampling import draw_prompts, forget_dead_models
from .unets import build_unet

MODES = {mode.name: mode for mode in (UNPATCHED, *WAYS, EVERY_OTHER_OPTION)}

ON_UNET = ("unpatched", "merge", "local window", "every option")
"""A UNet takes longer than a transformer, and shares with it what chooses tokens."""

CASES = [("Flux", mode) for mode in MODES] + [("SD15", mode) for mode in ON_UNET]
"""Each is a model and what is on it."""


def reduce(name: str, mode: str) -> ModelPatcher:
    """A model with the nodes of a mode."""
    return MODES[mode].put_on(build_unet(name))


def sample(model: ModelPatcher, pictures: tuple[int, int] = (0, 1)) -> Tensor:
    """Latents (n, 4, 20, 16) from the first to before the last of two, each with its own noise."""
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(2, 4, 20, 16, generator=generator)[slice(*pictures)]
    forget_dead_models()
    return comfy.sample.sample(
        model,
        noise,
        2,
        4.0,
        "heun",
        "normal",
        *draw_prompts(generator),
        torch.zeros_like(noise),
        seed=0,
        disable_pbar=True,
    )


def hash_picture(latent: Tensor) -> str:
    """Of all its bits."""
    return hashlib.sha256(latent.contiguous().numpy().tobytes()).hexdigest()


def hash_all() -> list[str]:
    """One picture of each case."""
    return [hash_picture(sample(reduce(*case))) for case in CASES]


def main() -> None:
    """For a process of its own."""
    json.dump(hash_all(), sys.stdout)
