"""Attention in parts: over some of the keys at a time, joined by the log of the scores' sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import torch
from torch import Tensor

from .attention_kernels import Part


@dataclass(frozen=True)
class Term:
    """Attention over some of the keys, as one term of a sum.

    parts: some rows of the batch at a time, in order. size: how many tokens each of the keys stands
    for.
    """

    parts: Sequence[Part]
    size: int = 1


def sum_terms(terms: Sequence[Term], taken_off: Term | None = None) -> Tensor:
    """Attention over the keys of all terms, (B, H, Nq, D), in the memory of the first one.

    The mean of the outputs, weighed by size · exp(lse). The first term has a single part.

    taken_off: some keys of these terms, with the same size there, that are not to be read. The
    rounding error grows with their share.
    """
    everything = [*terms, taken_off] if taken_off else terms
    logs = torch.cat([lse for term in everything for _, lse in term.parts])
    logs = logs.unflatten(0, (len(everything), -1))  # (n, B, H, Nq)
    for of_term, term in zip(logs, everything, strict=True):
        if term.size > 1:
            of_term += log(term.size)
    shares = logs.softmax(dim=0)
    if taken_off:
        # What is taken off is in the sum of all shares, and has to be taken off it twice.
        shares = torch.cat([shares[:-1], -shares[-1:]]) / torch.rsub(shares[-1], 1, alpha=2)
    out = terms[0].parts[0][0].mul_(shares[0, ..., None])
    for share, term in zip(shares[1:], everything[1:], strict=True):
        rows = [len(each) for each, _ in term.parts]
        some = zip(out.split(rows), term.parts, share.split(rows), strict=True)
        for summed, (each, _), weight in some:
            summed.addcmul_(each, weight[..., None])
    return out
