"""One attention of several: outputs over some keys each, joined by the log of the scores' sum."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import torch
from torch import Tensor

from ..constants import constant
from .partial import PartialOutput


def join_parts(parts: Sequence[PartialOutput], weights: Sequence[float]) -> tuple[Tensor, Tensor]:
    """Attention over the keys of all parts: the mean of their outputs, weighed by exp(lse).

    weights: how many tokens each key of a part stands for.

    Returns the output (..., Nq, D), and the log of what the keys of each part weigh together,
    (P, ..., Nq). The lse of the output is the logsumexp of these.
    """
    logs = torch.stack([lse for _, lse in parts])
    logs += _list_logs(tuple(weights), logs.device).view(-1, *[1] * (logs.ndim - 1))
    first, _ = parts[0]
    shares = logs.softmax(dim=0).to(first.dtype)[..., None]  # (P, ..., Nq, 1)
    out = first * shares[0]
    for (each, _), share in zip(parts[1:], shares[1:], strict=True):
        out.addcmul_(each, share)
    return out, logs


@constant
def _list_logs(weights: tuple[float, ...], device: torch.device) -> Tensor:
    """Made on the device, to which nothing is copied then. (P,) float32."""
    return torch.cat([torch.full((1,), log(weight), device=device) for weight in weights])
