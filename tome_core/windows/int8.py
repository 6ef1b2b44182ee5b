"""Local windows whose queries and keys are rounded to 8 bits: what a kernel for a GPU computes.

As SageAttention (arXiv 2410.02367, sec. 4.2) rounds them, but with a scale for each token, since a
window's keys are gathered one by one.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention import attend_by_sets
from .plan import WindowPlan

LEVELS = 127
LEAST = 1e-30
"""A token whose numbers are all smaller is rounded to zeros."""


def average_keys(k: Tensor) -> Tensor:
    """What all keys of a head have in common, and what a softmax does not see.

    It is one mean for all sets of keys, so that sets can be joined. (B, G, L, D) -> (B, G, 1, D),
    float32.
    """
    return k.mean(dim=2, keepdim=True, dtype=torch.float32)


def round_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    """Each row as whole numbers from -127 to 127, and their step.

    x: (..., D) float32. Returns (..., D) int8 and (..., 1) float32; their product is about x.
    """
    largest = x.abs().amax(dim=-1, keepdim=True).clamp(min=LEAST)
    return (x * (LEVELS / largest)).round().to(torch.int8), largest / LEVELS


def attend_in_int8(
    plan: WindowPlan, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    """As ``attend``, with queries and keys rounded, and all else in single precision.

    Keys are rounded after their mean is subtracted. One more channel adds q·mean back: softmax
    ignores it, except where merged queries read the far keys and each query its own near keys.
    """
    repeats = q.shape[1] // k.shape[1]
    mean = average_keys(k)
    of_mean = q.float() @ mean.repeat_interleave(repeats, dim=1).mT  # (B, H, L, 1)
    rounded, differences = _round(q.float()), _round(k.float() - mean)
    out = attend_by_sets(
        plan,
        torch.cat([rounded, of_mean], dim=3),
        F.pad(differences, (0, 1), value=1.0),
        F.pad(v.float(), (0, 1)),
        mask,
        scale,
    )
    return out[..., :-1].to(v.dtype)


def _round(x: Tensor) -> Tensor:
    numbers, step = round_rows(x)
    return numbers * step
