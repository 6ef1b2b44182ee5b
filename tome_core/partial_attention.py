"""Attention in parts: over some of the keys at a time, joined by the log of the scores' sum."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import torch
from torch import Tensor

from .attention_kernels import Part


def join_parts(parts: Sequence[Part], weights: Sequence[float]) -> Tensor:
    """Attention over the keys of all parts: the mean of their outputs, weighed by exp(lse).

    weights: how many tokens each key of a part stands for. Returns (..., Nq, D).
    """
    logs = [
        lse if weight == 1 else lse + log(weight)
        for (_, lse), weight in zip(parts, weights, strict=True)
    ]
    shares = torch.stack(logs).softmax(dim=0).to(parts[0][0].dtype)[..., None]  # (P, ..., Nq, 1)
    out = parts[0][0] * shares[0]
    for (each, _), share in zip(parts[1:], shares[1:], strict=True):
        out.addcmul_(each, share)
    return out
