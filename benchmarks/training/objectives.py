"""What networks learn: to tell a scene from noise, or to get in one step where a teacher gets in
four (progressive distillation, Salimans and Ho, arXiv 2202.00512).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import comfy.samplers
import torch
import torch.nn.functional as F
from torch import Tensor

Network = Callable[..., Tensor]
"""Of a latent, (B, C, [F,] H, W), noise levels and prompts."""

SCHEDULER = "simple"
STEPS = 4
"""Of a student."""
STEPS_OF_TEACHER = 2
"""For one of the student's."""


@dataclass(frozen=True)
class Batch:
    """latent, noise: (B, C, ...), scaled. context: (B, 77, C). spread: (B,), one number in each
    B-th of [0, 1), so that their sum has less variance than that of independent ones.
    """

    latent: Tensor
    noise: Tensor
    context: Tensor
    spread: Tensor


def denoise(network: Network, sampling: Any, batch: Batch, shift: float) -> Tensor:
    """Mean squared error of the predicted velocity. shift: of the noise levels, see recipes."""
    last = len(sampling.sigmas)
    shifted = shift * batch.spread / (1 + (shift - 1) * batch.spread)
    sigmas = sampling.sigmas[(shifted * last).long().clamp(max=last - 1)]
    noised = sampling.noise_scaling(sigmas, batch.noise, batch.latent)
    output = answer(network, sampling, sigmas, noised, batch.context)
    return F.mse_loss(output, _target(sampling, sigmas, noised, batch.latent))


def distil(
    network: Network,
    sampling: Any,
    batch: Batch,
    teacher: Network,
    nothing: Tensor,
    guidance: float,
) -> Tensor:
    """Mean squared error of the student's velocity, each example on a segment of its own.

    nothing: the empty prompt. guidance: of the teacher; the student needs none (Meng et al., arXiv
    2210.03142, section 3).
    """
    levels: Tensor = comfy.samplers.calculate_sigmas(sampling, SCHEDULER, STEPS * STEPS_OF_TEACHER)
    # The first of each row are the student's; the last is the first of the next row, or 0.
    rows = levels.to(batch.latent).unfold(0, STEPS_OF_TEACHER + 1, STEPS_OF_TEACHER)
    segments = (batch.spread * STEPS).long().clamp(max=STEPS - 1)
    levels = rows[segments].T  # (n + 1, B)
    before = sampling.noise_scaling(levels[0], batch.noise, batch.latent)
    after = walk(teacher, sampling, levels, before, batch.context, nothing, guidance)
    ahead = (1 - levels[-1] / levels[0]).view(-1, *[1] * (before.ndim - 1))
    # One Euler step to this picture leads from ``before`` to ``after``.
    target = _target(sampling, levels[0], before, before + (after - before) / ahead)
    return F.mse_loss(answer(network, sampling, levels[0], before, batch.context), target)


def answer(
    network: Network, sampling: Any, sigmas: Tensor, noised: Tensor, context: Tensor
) -> Tensor:
    """What ``network`` answers, computed in bfloat16 where the device multiplies so.

    sigmas: (B,). noised: (B, C, ...).
    """
    state = sampling.calculate_input(sigmas, noised)
    faster = noised.is_cuda or torch.cpu._is_avx512_bf16_supported()
    with torch.autocast(noised.device.type, torch.bfloat16, enabled=faster):
        return network(state, sampling.timestep(sigmas).float(), context=context).float()


@torch.no_grad()
def walk(
    network: Network,
    sampling: Any,
    levels: Tensor,
    state: Tensor,
    context: Tensor,
    nothing: Tensor | None = None,
    guidance: float = 1.0,
) -> Tensor:
    """Where Euler steps over ``levels``, (n + 1, B), lead from ``state``, (B, C, ...).

    nothing: the empty prompt, which ``guidance`` leads away from.
    """
    for sigmas, following in pairwise(levels):
        output = answer(network, sampling, sigmas, state, context)
        if nothing is not None and guidance != 1:
            other = answer(network, sampling, sigmas, state, nothing.expand_as(context))
            output = other + guidance * (output - other)
        denoised = sampling.calculate_denoised(sigmas, output, state)
        ahead = 1 - following / sigmas
        state = state + (denoised - state) * ahead.view(-1, *[1] * (state.ndim - 1))
    return state


def _target(sampling: Any, sigmas: Tensor, noised: Tensor, latent: Tensor) -> Tensor:
    """What a network has to answer for ComfyUI to read ``latent`` out of it.

    sampling: of a model that predicts a velocity, by whichever convention.
    """
    silent = sampling.calculate_denoised(sigmas, torch.zeros_like(noised), noised)
    one = torch.ones_like(sigmas)
    gain = sampling.calculate_denoised(sigmas, one, torch.zeros_like(one))
    return (latent - silent) / gain.view(-1, *[1] * (latent.ndim - 1))
