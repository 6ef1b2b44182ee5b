"""What the trained video model makes of captions that it was not trained on, as one picture."""

from __future__ import annotations

from pathlib import Path

import comfy.samplers
import torch
from comfy.model_patcher import ModelPatcher
from torch import Tensor

from ..trained import clips, codec, text, weights
from ..trained.motion import FRAMES
from ..trained.places import WEIGHTS, find_training_log
from . import curves, sheets

HELD_OUT_SEED = 1
"""Of clips drawn for measuring alone: no clip of these was trained on."""
HELD_OUT = 256
SAMPLES = 16
TOKENS = 16
STEPS = 20
SHOWN = slice(None, None, 2)
"""Of the frames: every second one."""


def draw(kept: Path, weights_file: Path = WEIGHTS["wan"]) -> list[Path]:
    """The training loss and samples, beside the weights. kept: folder of the drawn clips."""
    data = clips.load(kept, HELD_OUT, HELD_OUT_SEED)
    captions = data.captions[:SAMPLES]
    clip = text.build_encoder()
    prompts = torch.stack([text.encode(clip, caption) for caption in captions])
    model = weights.load(weights_file, dtype=torch.bfloat16)
    latent = sample(model, prompts, (codec.CHANNELS, FRAMES, TOKENS, TOKENS), STEPS)
    shown = frames(latent)[:, :, SHOWN]
    return [
        curves.training_loss(find_training_log(weights_file), weights_file.with_name("loss.png")),
        sheets.clip_sheet(shown, captions, weights_file.with_name("samples.png")),
    ]


@torch.inference_mode()
def sample(model: ModelPatcher, prompts: Tensor, shape: tuple[int, ...], steps: int) -> Tensor:
    """Unguided Euler steps. prompts: (B, 77, C). shape: of one latent, (12, F, H, W).

    Clip n has the noise of seed n. Returns (B, 12, F, H, W) as ComfyUI's samplers do: without the
    model's scales.
    """
    seeds = [torch.Generator().manual_seed(seed) for seed in range(len(prompts))]
    noise = torch.stack([torch.randn(shape, generator=seed) for seed in seeds])
    sigmas = comfy.samplers.calculate_sigmas(
        model.get_model_object("model_sampling"), "normal", steps
    )
    words = [[prompts, {}]]
    latent: Tensor = comfy.samplers.sample(
        model,
        noise,
        words,
        words,
        1.0,
        model.load_device,
        comfy.samplers.sampler_object("euler"),
        sigmas,
        model_options=model.model_options,
        latent_image=torch.zeros_like(noise),
        disable_pbar=True,
        seed=0,
    )
    return latent


def frames(latent: Tensor) -> Tensor:
    """What ``sample`` returns -> (B, 3, F, 2H, 2W) in [0, 1]."""
    return (codec.join_bands(latent) / 2 + 0.5).clamp(0, 1)
