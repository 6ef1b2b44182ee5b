"""What a network answers and has to answer, by whichever convention its model predicts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


def answer(
    network: nn.Module,
    sampling: Any,
    sigmas: Tensor,
    noised: Tensor,
    context: Tensor,
    dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """What ``network`` answers, computed in ``dtype``. sigmas: (B,). noised: (B, C, ...)."""
    state = sampling.calculate_input(sigmas, noised)
    with torch.autocast(noised.device.type, dtype, enabled=dtype != torch.float32):
        output: Tensor = network(state, sampling.timestep(sigmas).float(), context=context)
    return output.float()


def compute_target(sampling: Any, sigmas: Tensor, noised: Tensor, latent: Tensor) -> Tensor:
    """What a network has to answer for ComfyUI to read ``latent`` out of it.

    sampling: of a model that predicts a velocity, by whichever convention. sigmas: (B,). noised,
    latent: (B, C, ...).
    """
    silent = sampling.calculate_denoised(sigmas, torch.zeros_like(noised), noised)
    gain = measure_gain(sampling, sigmas)
    return (latent - silent) / gain.view(-1, *[1] * (latent.ndim - 1))


def measure_gain(sampling: Any, sigmas: Tensor) -> Tensor:
    """By how much the picture that ComfyUI reads changes with the network's answer: (B,)."""
    one = torch.ones_like(sigmas)
    changed: Tensor = sampling.calculate_denoised(sigmas, one, torch.zeros_like(one))
    return changed
