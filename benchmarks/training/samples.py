"""Pictures of a model, with their captions: of combinations that training never saw."""

from __future__ import annotations

from pathlib import Path

import comfy.samplers
import numpy as np
import torch
from comfy.model_patcher import ModelPatcher
from einops import rearrange
from PIL import Image, ImageDraw
from torch import Tensor

from ..trained import autoencoder
from .objectives import SCHEDULER, walk
from .pool import Source

COLUMNS = 4
SEED = 1
STEPS = 20
LINE = 16
"""Pixels of a caption."""


def sample(
    model: ModelPatcher, source: Source, tokens: int, count: int, steps: int, guidance: float
) -> tuple[Tensor, list[str]]:
    """Pixels (count, 3, frames, H, W) in [0, 1] after so many Euler steps, and their captions."""
    device = next(model.model.diffusion_model.parameters()).device
    generator = torch.Generator(device).manual_seed(SEED)
    layouts = source.draw_layouts(count, generator, held_out=True)
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
    return pixels.cpu(), layouts.tell(source.library.names, source.frames > 1)


def draw_sheet(pixels: Tensor, captions: list[str], place: Path) -> None:
    """Every scene with its caption below; of clips every fourth frame. pixels: as ``sample``."""
    rows = rearrange(pixels[:, :, ::4], "b c f h w -> b h (f w) c")
    height, width = rows.shape[1:3]
    columns = COLUMNS if pixels.shape[2] == 1 else 1
    lines = -(-len(rows) // columns)
    sheet = Image.new("RGB", (columns * width, lines * (height + LINE)), "white")
    pen = ImageDraw.Draw(sheet)
    for number, (row, caption) in enumerate(zip(rows, captions, strict=True)):
        left, top = number % columns * width, number // columns * (height + LINE)
        picture = Image.fromarray((row.numpy() * 255).round().astype(np.uint8))
        sheet.paste(picture, (left, top))
        pen.text((left + 2, top + height + 2), caption, "black")
    place.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(place, quality=90)
