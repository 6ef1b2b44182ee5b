"""Attention on merged tokens: a group of s tokens weighs as much as its s tokens did."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

ALIGNMENT = 8
"""Head channels are padded to a multiple of this, which PyTorch's fused kernels ask for."""


def with_log_sizes(q: Tensor, k: Tensor, sizes: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Queries and keys whose scores carry the log of the key's group size.

    Proportional attention, ToMe (arXiv 2210.09461) eq. 1: softmax(q·kᵀ·scale + log s). The log
    enters by extra channels and not by a mask: a mask would push PyTorch off its fused kernels.

    q: (B, H, Nq, D). k: (B, H, Nk, D). sizes: (B or 1, Nk) tokens per key. scale: as the attention
    is called with, usually D ** -0.5; the caller has to pass it on, since the channels have grown.
    Returns q and k with the same, larger D.
    """
    extra = ALIGNMENT - q.shape[-1] % ALIGNMENT
    ones = F.pad(q.new_ones(*q.shape[:-1], 1), (0, extra - 1))  # (B, H, Nq, extra)
    log_size = (sizes.float().log() / scale).to(k.dtype)[:, None, :, None]  # (B, 1, Nk, 1)
    logs = F.pad(log_size.expand(*k.shape[:-1], 1), (0, extra - 1))  # (B, H, Nk, extra)
    return torch.cat([q, ones], dim=-1), torch.cat([k, logs], dim=-1)


def mask_with_log_sizes(mask: Tensor | None, sizes: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask that also adds the log of the key's group size, where a mask costs nothing.

    mask: (..., Nk), bool (True attends) or added to the scores. sizes: (B or 1, Nk). dtype: of the
    queries. Returns a mask that is added to the scores, (B or 1, H or 1, Nq or 1, Nk).
    """
    log_sizes = sizes.log().to(dtype)[:, None, None]  # (B or 1, 1, 1, Nk)
    if mask is None:
        return log_sizes
    if mask.dtype == torch.bool:
        scores = torch.zeros_like(mask, dtype=dtype)
        mask = scores.masked_fill_(~mask, float("-inf"))
    if mask.ndim == 2:
        mask = mask[None]
    if mask.ndim == 3:
        mask = mask[:, None]  # (B, 1, Nq, Nk)
    return mask + log_sizes
