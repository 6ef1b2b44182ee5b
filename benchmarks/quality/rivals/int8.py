"""Attention in INT8, as SageAttention (arXiv 2411.10958) and comfy-kitchen's ``int8_attention``.

Numbers are rounded as there, but multiplied in single precision, which is exact here.
"""

from __future__ import annotations

from itertools import product
from math import inf

import torch
import torch.nn.functional as F
from torch import Tensor

QUERIES, KEYS = 32, 64
"""Tokens that share a scale."""
CHUNK = 256


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Queries and keys in 255 levels for each block, keys less their mean, values in 255 for each
    channel, and a query's weights in 255 of the largest of each block of keys.

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
            weights, total = weigh(some @ keys)
            into.copy_(weights @ values / total)
    return out


def weigh(scores: Tensor) -> tuple[Tensor, Tensor]:
    """(n, Nk) -> the rounded weights, alike, and their sums before they are rounded, (n, 1).

    The kernel adds block to block and knows the largest score of a block when it rounds, not that
    of the whole row.
    """
    blocks = F.pad(scores, (0, -scores.shape[1] % KEYS), value=-inf).unflatten(1, (-1, KEYS))
    largest = blocks.amax(2, keepdim=True)  # (n, blocks, 1)
    weights = (blocks - largest).exp()
    share = (largest - largest.amax(1, keepdim=True)).exp()
    total = (weights.sum(2, keepdim=True) * share).sum(1)
    rounded = (weights * 255).round() / 255 * share
    return rounded.flatten(1)[:, : scores.shape[1]], total


def round_blocks(x: Tensor, size: int) -> Tensor:
    """(B, H, L, D) in 255 levels, as wide as each block of ``size`` tokens needs."""
    length = x.shape[2]
    blocks = F.pad(x, (0, 0, 0, -length % size)).unflatten(2, (-1, size))
    step = blocks.abs().amax((3, 4), keepdim=True) / 127
    return round_to_levels(blocks, step).flatten(2, 3)[:, :, :length]


def round_to_levels(x: Tensor, step: Tensor) -> Tensor:
    """x as whole multiples of ``step``."""
    return (x / step.clamp(min=1e-8)).round() * step
