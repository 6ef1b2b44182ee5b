"""Scenes as pixels: subjects with alpha on a ground, all of a batch at once."""

from __future__ import annotations

from math import tau

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Generator, Tensor

from ..trained.layouts import COLOURS, STEPS, SURFACES, Layouts
from .library import Library

MOST_SIDE = 512
"""Larger pictures would show that the emoji have 256 pixels a side."""


def compose(
    layouts: Layouts,
    library: Library,
    side: int,
    frames: int,
    generator: Generator,
    variety: float = 1.0,
) -> Tensor:
    """The scenes as (B, 3, frames, side, side) in [0, 1]. frames: of clips; 1 for pictures, and for
    any one frame of a clip.

    variety: how much sizes and places vary with the same caption, from 0 to 1.
    """
    canvas = min(MOST_SIDE, 2 * side)  # and shrunk, so that edges are smooth
    ground = draw_grounds(layouts.ground, library.surfaces, canvas, generator)
    pixels = ground[:, None].expand(-1, frames, -1, -1, -1)
    count, kept = len(layouts.first), library.frames.shape[1]
    middles, sizes = _place(layouts, frames, kept > 1, generator, variety)
    start = _random(count, generator) * kept
    numbers = (start[:, None] + torch.arange(frames, device=start.device)).long() % kept
    shown = 1 + bool((layouts.second >= 0).any())
    for subject, middle, size in zip(
        (layouts.second, layouts.first)[-shown:], middles[-shown:], sizes[-shown:], strict=True
    ):
        pictures = library.frames[subject.clamp(min=0)[:, None], numbers].float() / 255
        alpha = pictures[:, :, 3:] * (subject >= 0).view(-1, 1, 1, 1, 1)
        cut = torch.cat([pictures[:, :, :3] * alpha, alpha], 2)
        pasted = _paste(cut, middle, size, canvas)
        pixels = pixels * (1 - pasted[:, :, 3:]) + pasted[:, :, :3]
    if canvas > side:
        pixels = F.avg_pool2d(pixels.flatten(0, 1), canvas // side).unflatten(0, (count, frames))
    return rearrange(pixels, "b f c h w -> b c f h w").clamp(0, 1)


def draw_grounds(kinds: Tensor, surfaces: Tensor, side: int, generator: Generator) -> Tensor:
    """(B, 3, side, side) in [0, 1]. kinds: (B,) in ``layouts.GROUNDS``."""
    count, device = len(kinds), kinds.device
    palette = torch.tensor(list(COLOURS.values()), device=device) / 255
    colour = palette[kinds % len(palette)] + 0.05 * (_random((count, 3), generator) - 0.5)
    dark = colour.mean(1, keepdim=True) < 0.25
    graded = (kinds >= len(palette))[:, None]
    end = torch.where(graded, torch.where(dark, colour + 0.5, colour * 0.25), colour)
    angle = tau * _random((count, 1, 1), generator)
    across = torch.linspace(-0.5, 0.5, side, device=device)
    slope = (across[:, None] * angle.sin() + across * angle.cos()) / 2**0.5 + 0.5  # (B, side, side)
    ends = (colour, end)
    plain, other = (one[:, :, None, None] for one in ends)
    drawn = torch.lerp(plain, other, slope[:, None])

    surface = kinds - 2 * len(palette)  # a photograph's number, or that after the last for a blur
    size = 0.4 + 0.6 * _random((count, 1), generator)
    middle = (1 - size) * (2 * _random((count, 2), generator) - 1)
    views = torch.cat([torch.diag_embed(size.expand(-1, 2)), middle[..., None]], 2)
    cells = F.affine_grid(views, [count, 3, side, side], align_corners=False)
    picked = surfaces[surface.clamp(0, len(SURFACES) - 1)].float() / 255
    photographed = F.grid_sample(picked, cells, "bilinear", "reflection", align_corners=False)
    coarse = 0.25 + 0.5 * _random((count, 3, 4, 4), generator)
    blurred = F.interpolate(coarse, (side, side), mode="bicubic")

    surface = surface.view(-1, 1, 1, 1)
    drawn = torch.where(surface >= 0, photographed, drawn)
    return torch.where(surface >= len(SURFACES), blurred, drawn).clamp(0, 1)


def _place(
    layouts: Layouts, frames: int, moving: bool, generator: Generator, variety: float
) -> tuple[list[Tensor], list[Tensor]]:
    """Of the second and the first subject: middles (B, frames, 2) in [-1, 1], and sizes (B,), as
    shares of the side.
    """
    count, device = len(layouts.first), layouts.first.device
    step = STEPS.to(device)[layouts.relation].float()  # (B, 2)
    paired = (layouts.second >= 0)[:, None]
    drawn = [0.5 + variety * (_random(count, generator) - 0.5) for _ in range(2)]
    low, spread = (0.45, 0.2) if moving else (0.6, 0.3)
    sizes = [torch.where(paired[:, 0], 0.38 + 0.12 * one, low + spread * one) for one in drawn]
    anywhere = (2 * _random(count, generator) - 1).view(-1, 1, 1)
    times = torch.linspace(-1, 1, frames, device=device)[:, None] if frames > 1 else anywhere
    middles = []
    for size, sign in zip(sizes, (-0.5, 0.5), strict=True):
        free = (1 - size)[:, None]
        jitter = variety * free * (2 * _random((count, 2), generator) - 1)
        apart = sign * step + jitter * torch.where(step == 0, 0.8, 0.1)
        middle = torch.where(paired, apart, jitter * (1 - step.abs() * moving))
        middles.append(middle[:, None] + 0.8 * free[:, None] * step[:, None] * moving * times)
    return middles, sizes


def _paste(pictures: Tensor, middle: Tensor, size: Tensor, side: int) -> Tensor:
    """Each on an empty canvas: (B, F, 4, h, w) -> (B, F, 4, side, side)."""
    count, frames = pictures.shape[:2]
    shrink = 2 * pictures.shape[-1] // side
    if shrink > 1:
        pictures = F.avg_pool2d(pictures.flatten(0, 1), shrink).unflatten(0, (count, frames))
    turns = (1 / size)[:, None].expand(-1, 2)
    shift = -middle * turns[:, None]
    views = torch.cat(
        [torch.diag_embed(turns)[:, None].expand(-1, frames, -1, -1), shift[..., None]], 3
    )
    shape = [count * frames, 4, side, side]
    cells = F.affine_grid(views.flatten(0, 1), shape, align_corners=False)
    pasted = F.grid_sample(pictures.flatten(0, 1), cells, align_corners=False)
    return pasted.unflatten(0, (count, frames))


def _random(shape: int | tuple[int, ...], generator: Generator) -> Tensor:
    shape = (shape,) if isinstance(shape, int) else shape
    return torch.rand(shape, generator=generator, device=generator.device)
