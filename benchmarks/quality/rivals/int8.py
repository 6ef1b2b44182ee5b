"""Attention in INT8, as SageAttention (arXiv 2411.10958) and comfy-kitchen's ``int8_attention``.

Numbers are rounded as there, but multiplied in single precision, which is exact here.
"""

from __future__ import annotations

from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor

QUERIES, KEYS = 32, 64
"""Tokens that share a scale."""
CHUNK = 256


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Queries and keys in 255 levels for each block, keys less their mean, values in 255 for each
    channel, and weights in 255 of the largest of each query.

    q, k, v: (B, H, L, D). Returns (B, H, Nq, D).
    """
    q = round_blocks(q, QUERIES)
    k = round_blocks(k - k.mean(2, keepdim=True), KEYS)
    v = round_to_levels(v, v.abs().amax(2, keepdim=True) / 127)
    out = torch.empty_like(q)
    # Some queries of one head at a time: scores take much memory.
    for row, head in product(range(len(q)), range(q.shape[1])):
        keys, values = k[row, head].mT * q.shape[3] ** -0.5, v[row, head]
        for some, into in zip(q[row, head].split(CHUNK), out[row, head].split(CHUNK), strict=True):
            scores = some @ keys
            weights = scores.sub_(scores.amax(1, keepdim=True)).exp_()
            total = weights.sum(1, keepdim=True)
            into.copy_(weights.mul_(255).round_() @ values / (255 * total))
    return out


def round_blocks(x: Tensor, size: int) -> Tensor:
    """(B, H, L, D) in 255 levels, as wide as each block of ``size`` tokens needs."""
    length = x.shape[2]
    blocks = F.pad(x, (0, 0, 0, -length % size)).unflatten(2, (-1, size))
    step = blocks.abs().amax((3, 4), keepdim=True) / 127
    return round_to_levels(blocks, step).flatten(2, 3)[:, :, :length]


def round_to_levels(x: Tensor, step: Tensor) -> Tensor:
    """x as whole multiples of ``step``."""
    return (x / step.clamp(min=1e-8)).round() * step
