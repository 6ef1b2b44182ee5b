"""Attention to keys that stand for several tokens."""

from __future__ import annotations

from torch import Tensor

from ..faster_forms import find_form
from .key_weights import find_log_sizes


def attend_weighed(q: Tensor, k: Tensor, v: Tensor, sizes: Tensor, scale: float) -> Tensor:
    """softmax(q·kᵀ·scale + log s)·v, ToMe (arXiv 2210.09461) eq. 1.

    Args:
        q: (B, H, Nq, D).
        k, v: (B, G, Nk, D), with H heads or fewer.
        sizes: (B or 1, Nk) tokens that each key stands for.
        scale: of the scores.

    Returns (B, H, Nq, D).
    """
    if faster := find_form("attention.attend_weighed", q.device, q, k, v, sizes, scale):
        return faster(q, k, v, sizes, scale)
    return attend_weighed_densely(q, k, v, sizes, scale)


def attend_weighed_densely(q: Tensor, k: Tensor, v: Tensor, sizes: Tensor, scale: float) -> Tensor:
    """As ``attend_weighed``, with every score in memory."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
    scores = (q * scale) @ k.mT + find_log_sizes(sizes)[:, None, None]  # (B, H, Nq, Nk)
    return scores.softmax(dim=-1).to(v.dtype) @ v
