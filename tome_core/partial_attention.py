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
    return _join(parts, _weigh(parts, weights))


def join_to_part(parts: Sequence[Part], weights: Sequence[float]) -> Part:
    """The same as one part, whose keys have their weights already."""
    logs = _weigh(parts, weights)
    return _join(parts, logs), logs.logsumexp(dim=0)


def _weigh(parts: Sequence[Part], weights: Sequence[float]) -> Tensor:
    """The log of what the keys of each part weigh together. (P, ..., Nq)"""
    logs = torch.stack([lse for _, lse in parts])
    logs += _list_logs(tuple(weights), logs.device).view(-1, *[1] * (logs.ndim - 1))
    return logs


def _join(parts: Sequence[Part], logs: Tensor) -> Tensor:
    first, _ = parts[0]
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
