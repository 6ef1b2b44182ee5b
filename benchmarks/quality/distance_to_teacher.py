"""How near a distilled model comes to what its teacher makes with many steps."""

from __future__ import annotations

import torch
from comfy.model_patcher import ModelPatcher
from torch import Tensor

from .. import intervals
from . import metrics, sampling
from .bench import ROWS
from .pairs import Pairs
from .regimes import Regime

TEACHERS_STEPS = 32


def describe(teacher: ModelPatcher, student: ModelPatcher, pairs: Pairs, regime: Regime) -> str:
    """What ``compare`` found, in words."""
    own, others = map(intervals.mean, compare(teacher, student, pairs, regime))
    size = f"{len(pairs.captions)} pictures of {pairs.tokens} x {pairs.tokens} tokens"
    return (
        f"{size}, PSNR to the teacher's {TEACHERS_STEPS} steps: "
        f"{own} dB with {regime.steps} steps, {others} dB with {regime.steps} of the teacher"
    )


def compare(
    teacher: ModelPatcher, student: ModelPatcher, pairs: Pairs, regime: Regime
) -> tuple[list[float], list[float]]:
    """PSNR of the student's and of the teacher's pictures in the student's ``regime``.

    Against the teacher with many steps; one figure for each picture.
    """
    many = _make(teacher, pairs, regime.with_steps(TEACHERS_STEPS))
    own, others = (
        metrics.psnr(_make(model, pairs, regime), many).tolist() for model in (student, teacher)
    )
    return own, others


def _make(model: ModelPatcher, pairs: Pairs, regime: Regime) -> Tensor:
    """(count, 3, H, W) in [0, 1]."""
    made = [
        sampling.pictures(model, sampling.sample(model, batch, regime).latent)
        for batch in pairs.batches(ROWS)
    ]
    return torch.cat(made)
