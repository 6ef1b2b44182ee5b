"""Pictures of a model and their captions: of combinations that training never saw."""

from __future__ import annotations

import comfy.samplers
import torch
from comfy.model_patcher import ModelPatcher
from torch import Tensor

from ..trained import autoencoder
from ..trained.layouts import Layouts
from .objectives import SCHEDULER, walk
from .pool import Source

SEED = 1
STEPS = 20


def sample(
    model: ModelPatcher, source: Source, tokens: int, count: int, steps: int, guidance: float
) -> tuple[Tensor, list[str]]:
    """Pixels (count, 3, frames, H, W) in [0, 1] after so many Euler steps, and their captions."""
    device = next(model.model.diffusion_model.parameters()).device
    generator = torch.Generator(device).manual_seed(SEED)
    moving = source.frames > 1
    layouts = Layouts.draw_unseen(count, len(source.library.names), generator, moving=moving)
    sampling = model.get_model_object("model_sampling").to(device)
    sigmas = comfy.samplers.calculate_sigmas(sampling, SCHEDULER, steps).to(device)
    shape = (count, autoencoder.CHANNELS, source.frames, tokens, tokens)
    noise = torch.randn(shape, generator=generator, device=device)
    if source.frames == 1:
        noise = noise[:, :, 0]
    levels = sigmas[:, None].expand(-1, count)
    first = sampling.noise_scaling(levels[0], noise, torch.zeros_like(noise), True)
    prompts, nothing = source.captions.encode(layouts), source.captions.encode_nothing()
    found = walk(model.model.diffusion_model, sampling, levels, first, prompts, nothing, guidance)
    latent = model.model.process_latent_out(found)
    pixels = autoencoder.decode(latent if source.frames > 1 else latent[:, :, None])
    return pixels.cpu(), layouts.tell(source.library.names, moving)
