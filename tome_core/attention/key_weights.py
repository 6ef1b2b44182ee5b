"""Proportional attention: a key that stands for s tokens weighs as much as s keys.

ToMe (arXiv 2210.09461) eq. 1: softmax(q·kᵀ·scale + log s).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from ..constants import apart_from_block

ALIGNMENT = 8
"""Head channels are padded to a multiple of this, which PyTorch's fused kernels ask for.

What they accept (PyTorch's sdp_utils.cpp): flash up to 256 channels and no mask, and it computes 72
as 96 and 136 as 192; cuDNN up to 128, on GPUs of compute capability 9.0 and 10.x and from cuDNN
9.22 on up to 256; the memory-efficient kernel any number. ComfyUI asks for them in this order.
"""


_logs = WeakIdKeyDictionary()
"""It has those of sizes that still exist. Where tokens are chosen, all layers and steps have the
same sizes."""


@torch.inference_mode(False)
def find_log_sizes(sizes: Tensor) -> Tensor:
    """log s, computed once for each tensor of sizes; on a GPU it is a launch. Nobody changes it."""
    found: Tensor | None = _logs.get(sizes)
    if found is None:
        with apart_from_block():  # constant sizes outlive the block, and then their logs do
            found = _logs[sizes] = sizes.log()
    return found


def count_channels(channels: int) -> int:
    """How many channels of a head ``add_size_channels`` makes of these, at least one more."""
    return channels + ALIGNMENT - channels % ALIGNMENT


def add_size_channels(
    q: Tensor, k: Tensor, v: Tensor, sizes: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values with extra channels that add log s to the scores.

    Channels and not a mask: a mask would push PyTorch off its fastest kernels on a GPU. The
    attention must be called with no scale: it then takes D' ** -0.5, and q is multiplied so that
    the scores come out with ``scale``. ComfyUI's functions honour a scale only since its pull
    request 13376.

    Args:
        q: (B, H, Nq, D).
        k, v: (B, G, Nk, D), with H heads or fewer.
        sizes: (B or 1, Nk) tokens that each key stands for.
        scale: of the scores, usually D ** -0.5.

    Returns q, k, v with D' channels, D' > D. The output's channels beyond D are to be cut off.
    """
    channels, wide = q.shape[-1], count_channels(q.shape[-1])
    root = wide**0.5
    wide_q, wide_k, wide_v = (x.new_empty(*x.shape[:-1], wide) for x in (q, k, v))
    torch.mul(q, scale * root, out=wide_q[..., :channels])
    wide_q[..., channels:].fill_(1.0)
    wide_k[..., :channels] = k
    logs = wide_k[..., channels:]  # (B, G, Nk, extra), each an equal share of log s
    log_sizes = find_log_sizes(sizes)[:, None, :, None]  # (B or 1, 1, Nk, 1)
    torch.mul(log_sizes.expand_as(logs), root / (wide - channels), out=logs)
    wide_v[..., :channels] = v
    wide_v[..., channels:].zero_()
    return wide_q, wide_k, wide_v


def add_sizes_to_mask(mask: Tensor | None, sizes: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask that also adds log s to the scores.

    Args:
        mask: (..., Nk), bool (True attends) or added to the scores.
        sizes: (B or 1, Nk) tokens that each key stands for.
        dtype: of the queries.

    Returns a mask that is added to the scores, (B or 1, H or 1, Nq or 1, Nk).
    """
    log_sizes = find_log_sizes(sizes).to(dtype)[:, None, None]  # (B or 1, 1, 1, Nk)
    return log_sizes if mask is None else make_additive(mask, dtype) + log_sizes


def make_additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask that is added to the scores, of one that may be bool, with all four dimensions."""
    if mask.dtype == torch.bool:
        scores = torch.zeros_like(mask, dtype=dtype)
        mask = scores.masked_fill_(~mask, float("-inf"))
    return expand_mask(mask)


def expand_mask(mask: Tensor) -> Tensor:
    """A mask as ComfyUI takes it, with all four dimensions.

    mask: (Nq, Nk), (B, Nq, Nk) or (B, H, Nq, Nk), each side may be 1. Returns (B, H, Nq, Nk).
    """
    if mask.ndim == 3:
        return mask[:, None]
    return mask[(None,) * (4 - mask.ndim)]
