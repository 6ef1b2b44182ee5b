"""How alike the tokens are that merge: among neighbours against among all.

On features of photographs, not on random noise: those are what neighbours of a picture are alike
in. Noise is added to the photograph, as a diffusion model sees it.
"""

from __future__ import annotations

import skimage.data
import torch
import torch.nn.functional as F
from token_merge.tome_core import (
    Draws,
    MergePlan,
    TokenGrid,
    choose_strided,
    match_global,
    match_local,
)
from torch import Tensor

from .results import Similarity

PHOTOGRAPHS = ("astronaut", "chelsea", "coffee", "rocket", "brick", "grass", "gravel", "camera")
"""Those that ship inside scikit-image: nothing is downloaded."""
NOISE_LEVELS = (0.0, 0.1, 0.3, 1.0)
"""Standard deviation of the noise; pixels reach from -1 to 1."""
STRIDE = 2


def measure(side: int, ratio: float, noise: float) -> Similarity:
    """Merge ``ratio`` of the side x side tokens of every photograph by either matching."""
    grid = TokenGrid(side, side)
    cpu = torch.device("cpu")
    dst = choose_strided(grid, STRIDE, STRIDE, Draws(("similarity",), cpu), cpu)
    merged = int(grid.tokens * ratio)
    local, everywhere = [], []
    for name in PHOTOGRAPHS:
        metric = features(photograph(name, 8 * side), noise)
        plan = match_local(metric, grid, dst, merged)
        local.append(merged_similarity(plan, metric))
        plan = match_global(metric, grid, dst, merged)
        everywhere.append(merged_similarity(plan, metric))
    return Similarity(
        noise=noise,
        ratio=ratio,
        tokens=grid.tokens,
        local=sum(local) / len(local),
        everywhere=sum(everywhere) / len(everywhere),
        worst=min(one / all_ for one, all_ in zip(local, everywhere, strict=True)),
    )


def photograph(name: str, side: int) -> Tensor:
    """Its largest square, resized, in [-1, 1]: (1, 3, side, side)."""
    pixels = torch.from_numpy(getattr(skimage.data, name)()).float() / 255
    pixels = pixels[..., None].expand(-1, -1, 3) if pixels.ndim == 2 else pixels  # (H, W, 3)
    square = min(pixels.shape[:2])
    picture = pixels[:square, :square].permute(2, 0, 1)[None]
    resized = F.interpolate(picture, (side, side), mode="bilinear", antialias=True)
    return 2 * resized - 1


def features(picture: Tensor, noise: float) -> Tensor:
    """Layer-normed tokens of a fixed random convolutional network, one per 8 x 8 pixels.

    (1, 3, H, W) -> (1, H·W / 64, 128). Normed as the tokens that attention gets are.
    """
    generator = torch.Generator().manual_seed(0)
    x = picture + noise * torch.randn(picture.shape, generator=generator)
    for width, wider, stride in ((3, 32, 2), (32, 64, 2), (64, 128, 2), (128, 128, 1)):
        weight = torch.randn(wider, width, 3, 3, generator=generator) * (2 / (9 * width)) ** 0.5
        x = F.conv2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), weight, stride=stride)
        x = F.gelu(F.layer_norm(x.movedim(1, -1), (wider,))).movedim(-1, 1)
    return F.layer_norm(x.flatten(2).mT, (128,))


def merged_similarity(plan: MergePlan, metric: Tensor) -> float:
    """Mean cosine similarity of every merged source of one image to its destination."""
    unit = F.normalize(metric[0], dim=-1)  # (N, C)
    destination = plan.chosen[0, plan.assign[0]]  # (N,), the token that stands for each
    source = torch.arange(len(unit))
    merged = destination != source
    return (unit[source[merged]] * unit[destination[merged]]).sum(-1).mean().item()
