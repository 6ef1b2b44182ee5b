"""Attention calls as plans see them: a query for each key, the picture's tokens in one piece."""

from __future__ import annotations

from dataclasses import replace

import torch.nn.functional as F

from .attention_record import RecordedCall

Kinds = tuple[str, ...]


def arrange_call(call: RecordedCall, kinds: Kinds) -> RecordedCall:
    """With zeros for queries that are missing and for their outputs.

    kinds: of the keys, as the model has them. The prompt's tokens furthest from the picture are
    those without a query.
    """
    queries, keys = call.lengths
    sides = (0, keys - queries) if kinds[0] == "picture" else (keys - queries, 0)
    order = _gather_picture(kinds)
    out = None if call.out is None else F.pad(call.out, (0, 0, *sides))[:, :, order]
    q = F.pad(call.q, (0, 0, *sides))
    return replace(call, q=q[:, :, order], k=call.k[:, :, order], v=call.v[:, :, order], out=out)


def arrange_kinds(kinds: Kinds) -> Kinds:
    """Of the keys in the arranged call."""
    return tuple(kinds[row] for row in _gather_picture(kinds))


def blank_outputs(call: RecordedCall) -> RecordedCall:
    """Zeros as the output of queries that are zeros."""
    asking = (call.q != 0).any(dim=(1, 3), keepdim=True)
    return replace(call, out=None if call.out is None else call.out * asking)


def _gather_picture(kinds: Kinds) -> list[int]:
    """All rows, with the picture's first where they are not in one piece."""
    rows = range(len(kinds))
    picture = [row for row in rows if kinds[row] == "picture"]
    if picture[-1] - picture[0] == len(picture) - 1:
        return [*rows]
    return [*picture, *(row for row in rows if kinds[row] != "picture")]
