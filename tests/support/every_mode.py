"""Every way in which our nodes reduce, on the narrow models, and one picture of each."""

from __future__ import annotations

import hashlib
import json
import sys

import comfy.sample
import torch
from comfy.model_patcher import ModelPatcher
from token_merge.nodes.hooks.registry import attach
from token_merge.tome_core import DownsampleSettings, MergeSettings, Settings
from token_merge.tome_core.schedule import PercentWindow
from torch import Tensor

from .unet_sampling import forget_dead_models
from .unets import build_unet

MODES: dict[str, tuple[Settings, ...]] = {
    "plain": (),
    "merge": (MergeSettings(),),
    "interleaved": (DownsampleSettings(local_window=0),),
    "stratified": (DownsampleSettings(local_window=0, method="stratified"),),
    "local window": (DownsampleSettings(local_window=8),),
    "merged queries and downsample": (MergeSettings(target="queries"), DownsampleSettings()),
    "every option of both": (
        MergeSettings(
            window=PercentWindow(0.1, 1.0),
            max_tokens=100,
            seed=5,
            ratio=0.6,
            max_downsample=2,
            target="queries",
            stride_x=3,
            stride_y=2,
            merge_cross_attention=True,
            merge_mlp=True,
            matching="global",
            refresh_steps=2,
        ),
        DownsampleSettings(
            window=PercentWindow(0.0, 0.9),
            max_tokens=60,
            seed=6,
            factor=2.5,
            factor_level_2=1.5,
            temporal_factor=1.5,
            local_window=0,
        ),
    ),
    "every other option": (
        MergeSettings(window=PercentWindow(0.0, 0.5), random_destinations=False, max_downsample=8),
        DownsampleSettings(
            window=PercentWindow(0.5, 1.0), method="area", proportional_attention=False
        ),
    ),
}
"""By name; the settings of one or two nodes."""

MODELS = ("SD15", "Flux")


def reduce(name: str, mode: str) -> ModelPatcher:
    """One of ``MODELS`` with the nodes of a mode."""
    model = build_unet(name)
    for settings in MODES[mode]:
        model = attach(model, settings)
    return model


def sample(model: ModelPatcher, pictures: tuple[int, int] = (0, 1)) -> Tensor:
    """Latents (n, 4, 20, 16) from the first to before the last of two, each with its own noise."""
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(2, 4, 20, 16, generator=generator)[slice(*pictures)]
    pooled = torch.randn(1, 1280, generator=generator)
    prompts = [
        [[torch.randn(1, 7, 32, generator=generator), {"pooled_output": pooled}]] for _ in range(2)
    ]
    forget_dead_models()
    return comfy.sample.sample(
        model,
        noise,
        2,
        4.0,
        "heun",
        "normal",
        *prompts,
        torch.zeros_like(noise),
        seed=0,
        disable_pbar=True,
    )


def hash_picture(latent: Tensor) -> str:
    """Of all its bits."""
    return hashlib.sha256(latent.contiguous().numpy().tobytes()).hexdigest()


def hash_all() -> dict[str, dict[str, str]]:
    """One picture of each model in each mode."""
    return {
        name: {mode: hash_picture(sample(reduce(name, mode))) for mode in MODES} for name in MODELS
    }


def main() -> None:
    """For a process of its own."""
    json.dump(hash_all(), sys.stdout)
