"""Attention with fewer queries than keys, made whole: zeros stand for the queries it lacks."""

from __future__ import annotations

from dataclasses import replace

import torch.nn.functional as F

from .attention_record import RecordedCall


def fill_queries(call: RecordedCall, kinds: tuple[str, ...]) -> RecordedCall:
    """With a query for each key, and zeros as the output of the new ones.

    kinds: of the keys. The prompt's tokens furthest from the picture are those without a query.
    """
    queries, keys = call.lengths
    sides = (0, keys - queries) if kinds[0] == "picture" else (keys - queries, 0)
    out = None if call.out is None else F.pad(call.out, (0, 0, *sides))
    return replace(call, q=F.pad(call.q, (0, 0, *sides)), out=out)


def blank_outputs(call: RecordedCall) -> RecordedCall:
    """Zeros as the output of queries that are zeros."""
    asking = (call.q != 0).any(dim=(1, 3), keepdim=True)
    return replace(call, out=None if call.out is None else call.out * asking)
