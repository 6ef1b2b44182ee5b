"""What was compared and on which machine: what a bug report needs."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import comfyui_version
import torch
from comfy.ldm.modules.attention import optimized_attention
from comfy.model_management import get_torch_device_name
from comfy.model_patcher import ModelPatcher

from .difference import split_streams
from .sampling import Sampling

PACK = Path(__file__).parents[2]

Fact = tuple[str, str]
"""What it is, and how it is here."""


def describe_surroundings(
    plain: ModelPatcher, patched: ModelPatcher, sampling: Sampling
) -> tuple[Fact, ...]:
    models = dict.fromkeys(map(_name_model, (plain, patched)))
    return (
        ("Model", " and ".join(models)),
        ("Latent", _describe_latent(sampling)),
        (
            "Sampling",
            f"{sampling.steps} steps, cfg {sampling.cfg:g}, {sampling.sampler_name}, "
            f"{sampling.scheduler}, denoise {sampling.denoise:g}, seed {sampling.seed}",
        ),
        ("Device", f"{_name_device(plain.load_device)}, {optimized_attention.__name__}"),
        (
            "Versions",
            f"Token Merge {find_version()}, ComfyUI {comfyui_version.__version__}, "
            f"torch {torch.__version__}, Python {platform.python_version()}",
        ),
    )


def find_version() -> str:
    """Of this pack, from the file by which it is published."""
    text = (PACK / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "(.+)"$', text, re.MULTILINE)
    return found[1] if found else "unknown"


def _name_model(model: ModelPatcher) -> str:
    return f"{type(model.model).__name__}, {str(model.model_dtype()).removeprefix('torch.')}"


def _describe_latent(sampling: Sampling) -> str:
    """As (B, C, H, W) or (B, C, F, H, W)."""
    streams = split_streams(sampling.latent_image["samples"])
    text = " and ".join(" x ".join(map(str, stream.shape)) for stream in streams)
    return text + (", with a mask" if "noise_mask" in sampling.latent_image else "")


def _name_device(device: torch.device) -> str:
    name = get_torch_device_name(device)
    if device.type != "cpu":
        return name
    processor = platform.processor() or platform.machine()
    return f"{name} ({processor}, threads: {torch.get_num_threads()})"
