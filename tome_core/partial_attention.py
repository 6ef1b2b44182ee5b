"""Attention in parts: over some of the keys at a time, joined by the log of the scores' sum."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import log

import torch
from torch import Tensor

from .attention_kernels import Part


def join_parts(parts: Sequence[Part], weights: Sequence[float]) -> Tensor:
    """Attention over the keys of all parts: the mean of their outputs, weighed by exp(lse).

    weights: how many tokens each key of a part stands for. Returns (..., Nq, D).
    """
    first, lse = parts[0]
    logs = torch.stack([lse for _, lse in parts])  # (P, ..., Nq)
    logs += _list_logs(tuple(weights), lse.device).view(-1, *[1] * lse.ndim)
    shares = logs.softmax(dim=0).to(first.dtype)[..., None]  # (P, ..., Nq, 1)
    out = first * shares[0]
    for (each, _), share in zip(parts[1:], shares[1:], strict=True):
        out.addcmul_(each, share)
    return out


@lru_cache(maxsize=64)
@torch.inference_mode(False)
def _list_logs(weights: tuple[float, ...], device: torch.device) -> Tensor:
    """Made on the device, to which nothing is copied then. (P,) float32."""
    return torch.cat([torch.full((1,), log(weight), device=device) for weight in weights])
