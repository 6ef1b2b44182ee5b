"""Progressive distillation (Salimans and Ho, arXiv 2202.00512): one step for several of a teacher.

A noised example at one of the student's noise levels is where a segment starts. The teacher takes
several Euler steps from there, to the student's next level. The student learns to get to the same
place in one. Its schedule has few levels, so it learns these alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import comfy.samplers
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .batches import Batches
from .target import answer, compute_target

SCHEDULER = "simple"
STEPS = 4
"""Of the student."""
STEPS_OF_TEACHER = 4
"""For one of the student's."""


@dataclass(frozen=True)
class Distillation:
    """An ``Objective``. teacher: its weights stay as they are. dtype: what both compute in."""

    batches: Batches
    teacher: nn.Module
    dtype: torch.dtype = torch.bfloat16

    def compute_loss(self, network: nn.Module, step: int, device: torch.device) -> Tensor:
        """Mean squared error of the student's velocity, each example on a segment of its own."""
        batch = self.batches.draw(step, device)
        sampling = self.batches.model.get_model_object("model_sampling")
        segments = (batch.spread * STEPS / len(batch.spread)).long().clamp(max=STEPS - 1)
        levels = list_segments(sampling).to(batch.latent)[segments].T  # (n + 1, B)
        before = sampling.noise_scaling(levels[0], batch.noise, batch.latent)
        after = walk(self.teacher, sampling, levels, before, batch.context, self.dtype)
        target = compute_segment_target(sampling, levels[0], levels[-1], before, after)
        output = answer(network, sampling, levels[0], before, batch.context, self.dtype)
        return F.mse_loss(output, target)


def list_segments(sampling: Any) -> Tensor:
    """The teacher's noise levels in each step of the student, (STEPS, STEPS_OF_TEACHER + 1).

    The first of each row are the student's; the last is the first of the next row, or 0.
    """
    steps = STEPS * STEPS_OF_TEACHER
    levels: Tensor = comfy.samplers.calculate_sigmas(sampling, SCHEDULER, steps)
    return levels.unfold(0, STEPS_OF_TEACHER + 1, STEPS_OF_TEACHER)


@torch.no_grad()
def walk(
    network: nn.Module,
    sampling: Any,
    levels: Tensor,
    state: Tensor,
    context: Tensor,
    dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """Where Euler steps over ``levels``, (n + 1, B), lead from ``state``, (B, C, ...)."""
    for sigmas, following in pairwise(levels):
        output = answer(network, sampling, sigmas, state, context, dtype)
        denoised = sampling.calculate_denoised(sigmas, output, state)
        ahead = 1 - following / sigmas
        state = state + (denoised - state) * ahead.view(-1, *[1] * (state.ndim - 1))
    return state


def compute_segment_target(
    sampling: Any, sigmas: Tensor, following: Tensor, before: Tensor, after: Tensor
) -> Tensor:
    """What a network has to answer for one Euler step to lead from ``before`` to ``after``.

    For a flow model this is the mean velocity over the segment. sigmas, following: (B,), the noise
    levels at its ends. before, after: (B, C, ...).
    """
    ahead = (1 - following / sigmas).view(-1, *[1] * (before.ndim - 1))
    return compute_target(sampling, sigmas, before, before + (after - before) / ahead)
