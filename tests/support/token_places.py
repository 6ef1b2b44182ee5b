"""Which rows of a model's attention are picture, text and references, found from outside.

Nothing here knows any layout: one part of the input is changed, and the values that change with
it are its tokens. Attention mixes them, so the first calls tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, groupby
from typing import Any

import torch
from torch import Tensor

from .attention_record import AttentionRecord, RecordedCall
from .small_models import SampleRequest, SmallModel

CHANGES: dict[str, dict[str, Any]] = {
    "picture": {"latent_seed": 11},
    "reference": {"reference_seed": 13},
    "text": {"prompt_seed": 12, "extras_seed": 14},
}
MIXED = {("padding", "text"), ("padding", "picture"), ("reference", "picture")}


@dataclass(frozen=True)
class Places:
    """kinds: "picture", "reference", "text" or "padding", per row of the main blocks' attention.

    main: the number of the first call of the main blocks; those before are refiners.
    """

    kinds: tuple[str, ...]
    main: int

    def rows(self, *kinds: str) -> Tensor:
        """Where these kinds lie. (M,) ascending"""
        return torch.tensor([n for n, kind in enumerate(self.kinds) if kind in kinds])

    @property
    def segments(self) -> list[tuple[str, int]]:
        """Kinds in order, each with how many rows in a row it has."""
        return [(kind, len(list(rows))) for kind, rows in groupby(self.kinds)]


def record_calls(
    family: SmallModel, run: SampleRequest, noise: Tensor | None = None
) -> list[RecordedCall]:
    """The attention calls of one call of the unpatched model."""
    calls = AttentionRecord()
    run = replace(run, steps=1, cfg=1.0)
    run.sample(calls.watch(family.build()), family, noise=noise)
    return calls.asked


@cache
def find_places(family: SmallModel, run: SampleRequest) -> Places:
    """Of the tokens in the main blocks.

    Where refiners have mixed picture, references and padding before, the refiners' own first
    calls tell them apart, if their rows follow each other as in the main blocks.
    """
    unpatched = record_calls(family, run)
    changed = {
        what: record_calls(family, replace(run, **change)) for what, change in CHANGES.items()
    }
    lengths = [keys if queries == keys else 0 for queries, keys in (c.lengths for c in unpatched)]
    main = lengths.index(max(lengths))
    kinds = [
        _kinds(unpatched[n], {what: calls[n] for what, calls in changed.items()})
        for n in range(main + 1)
    ]
    stages = [next(numbers) for _, numbers in groupby(range(main), key=lengths.__getitem__)]
    refined = tuple(chain.from_iterable(kinds[n] for n in stages))
    same_order = len(refined) == len(kinds[main]) and all(
        before == after or (before, after) in MIXED
        for before, after in zip(refined, kinds[main], strict=True)
    )
    return Places(refined if same_order else kinds[main], main)


def _kinds(unpatched: RecordedCall, changed: dict[str, RecordedCall]) -> tuple[str, ...]:
    """Of each row, the first thing it changes with; conditioning may sway the picture's rows."""
    differs = {what: changed_rows(unpatched, call) for what, call in changed.items()}
    return tuple(
        next((what for what, rows in differs.items() if rows[n]), "padding")
        for n in range(unpatched.v.shape[2])
    )


def changed_rows(first: RecordedCall, second: RecordedCall) -> Tensor:
    """Which rows of the values differ. (Nk,) bool"""
    return (first.v != second.v).any(dim=3).flatten(0, 1).any(dim=0)


def find_rows_of_token(
    family: SmallModel, run: SampleRequest, unpatched: list[RecordedCall], token: tuple[int, ...]
) -> list[int]:
    """Rows that change with one token of the latent, in the first call that has any.

    The row that changes most comes first. unpatched: what ``record_calls(family, run)`` gave.
    """
    noise = run.latent(family).clone()
    cells = [slice(n * side, (n + 1) * side) for n, side in zip(token, family.patch, strict=True)]
    index = (slice(None), slice(None), *cells)
    noise[index] += 1.0
    pairs = zip(unpatched, record_calls(family, run, noise), strict=True)
    changes = ((a.v - b.v).abs().sum(dim=(0, 1, 3)) for a, b in pairs)
    first = next(rows for rows in changes if rows.any())
    return first.argsort(descending=True)[: first.count_nonzero()].tolist()
