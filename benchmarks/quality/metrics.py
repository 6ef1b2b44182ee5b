"""How far pictures are from other pictures, one by one and as sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from comfy.ldm.modules.diffusionmodules.openaimodel import forward_timestep_embed
from comfy.ldm.modules.diffusionmodules.util import timestep_embedding
from comfy.model_patcher import ModelPatcher
from skimage.metrics import peak_signal_noise_ratio, structural_similarity
from torch import Tensor

from ..trained import codec

FEATURE_TIME = 100
"""Of 1000: noise so weak that the model sees the picture; none is added."""


def squared_error(pictures: Tensor, others: Tensor) -> Tensor:
    """Mean over each picture, in [0, 1]: (B, 3, H, W) twice -> (B,)."""
    return (pictures - others).square().flatten(1).mean(1)


def flicker(clips: Tensor, plain: Tensor) -> Tensor:
    """Squared error of what changes from frame to frame, mean over each clip.

    0 where the clips differ by a picture that stands still. (B, 3, F, H, W) twice -> (B,).
    """
    return squared_error(clips.diff(dim=2), plain.diff(dim=2))


def psnr(pictures: Tensor, others: Tensor) -> Tensor:
    """Decibels; equal pictures have infinitely many. (B, 3, H, W) twice -> (B,)."""
    return _compare(peak_signal_noise_ratio, pictures, others)


def ssim(pictures: Tensor, others: Tensor) -> Tensor:
    """Structural similarity with scikit-image's defaults: (B, 3, H, W) twice -> (B,)."""
    return _compare(partial(structural_similarity, channel_axis=0), pictures, others)


def _compare(metric: Callable[..., float], pictures: Tensor, others: Tensor) -> Tensor:
    """One of scikit-image's metrics, of pictures in [0, 1]."""
    values = [
        metric(one.numpy(), other.numpy(), data_range=1.0)
        for one, other in zip(pictures.cpu(), others.cpu(), strict=True)
    ]
    return torch.tensor(values)


@dataclass(frozen=True)
class Features:
    """What the encoder of the trained UNet makes of pictures, whichever model made them.

    model: the UNet, unpatched. prompt: (1, 77, C), of no words.
    """

    model: ModelPatcher
    prompt: Tensor

    @torch.no_grad()
    def compute(self, pictures: Tensor) -> list[Tensor]:
        """One map per level, the last after the middle: (B, 3, H, W) -> [(B, C, h, w), ...]."""
        unet = self.model.model.diffusion_model
        times = torch.full((len(pictures),), FEATURE_TIME)
        embedded = unet.time_embed(timestep_embedding(times, unet.model_channels))  # (B, C)
        context = self.prompt.expand(len(pictures), -1, -1)
        h = self.model.model.process_latent_in(codec.split_bands(2 * pictures - 1))
        maps: list[Tensor] = []
        for block in (*unet.input_blocks, unet.middle_block):
            before = h
            h = forward_timestep_embed(block, h, embedded, context, {})
            if h.shape[2] < before.shape[2]:
                maps.append(before)  # a level's last map, before it is made smaller
        return [*maps, h]


def feature_distance(maps: list[Tensor], others: list[Tensor]) -> Tensor:
    """LPIPS's distance (arXiv 1801.03924) without learned weights, over one batch: (B,).

    Each token's channels are brought to length 1; squared differences are summed over channels,
    then averaged over tokens and levels.
    """
    levels = [
        (F.normalize(one, dim=1) - F.normalize(other, dim=1)).square().sum(1).mean((1, 2))
        for one, other in zip(maps, others, strict=True)
    ]
    return torch.stack(levels).mean(0)


def pooled(maps: list[Tensor]) -> Tensor:
    """One vector a picture: every level's mean over tokens, (B, sum of C)."""
    return torch.cat([one.mean((2, 3)) for one in maps], dim=1)


def kernel_distance(vectors: Tensor, others: Tensor) -> float:
    """KID (arXiv 1801.01401): unbiased squared MMD with a cubic kernel. (n, C), (m, C).

    Channels are standardised by ``others``, the reference. Around 0, and perhaps below, for two
    sets of one distribution.
    """
    mean, spread = others.mean(0), others.std(0) + 1e-6
    x, y = ((vectors - mean) / spread).double(), ((others - mean) / spread).double()
    within_x, within_y, between = _cubic(x, x), _cubic(y, y), _cubic(x, y)
    n, m = len(x), len(y)
    mean_x = (within_x.sum() - within_x.diagonal().sum()) / (n * (n - 1))
    mean_y = (within_y.sum() - within_y.diagonal().sum()) / (m * (m - 1))
    return float(mean_x + mean_y - 2 * between.mean())


def _cubic(x: Tensor, y: Tensor) -> Tensor:
    return (x @ y.T / x.shape[1] + 1) ** 3
