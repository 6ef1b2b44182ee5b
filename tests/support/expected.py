"""What must remain of attention's tokens, from the places that were found from outside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from .attention_record import AttentionRecord, RecordedCall
from .small_models import SampleRequest, SmallModel
from .token_places import find_places

LAID_OUT_ANEW = {"HiDream-E1": "image_cond"}
"""With what conditioning. Their pictures are interwoven with references."""


@dataclass(frozen=True)
class CallPair:
    """One attention call as asked for and as it reached the kernel.

    kinds: of its rows, None where no node may touch it: refiners and cross-attention.
    """

    asked: RecordedCall
    reached: RecordedCall
    kinds: tuple[str, ...] | None


def pair_calls(
    record: AttentionRecord, family: SmallModel, run: SampleRequest
) -> Iterator[CallPair]:
    """All calls of a run of one step and one prompt."""
    places = find_places(family, run)
    picture = tuple(kind for kind in places.kinds if kind == "picture")
    assert len(record.asked) == len(record.reached)
    for n, (asked, reached) in enumerate(zip(record.asked, record.reached, strict=True)):
        kinds = None
        queries, keys = asked.lengths
        if n >= places.main and queries == keys and family.name not in LAID_OUT_ANEW:
            # SD 3.5 Medium attends among the picture alone too.
            kinds = {len(places.kinds): places.kinds, len(picture): picture}.get(keys)
        yield CallPair(asked, reached, kinds)


def rows_left_by_downsampling(
    kinds: tuple[str, ...], grid: tuple[int, ...], factor: int, temporal_factor: int = 1
) -> list[int]:
    """All but the picture's rows that are not in the middle of their cell on every axis."""
    factors = (temporal_factor, factor, factor)[-len(grid) :]
    kept = [_middles(side, by) for side, by in zip(grid, factors, strict=True)]
    tokens = product(*map(range, grid))
    stays = [all(n in axis for n, axis in zip(token, kept, strict=True)) for token in tokens]
    picture = [row for row, kind in enumerate(kinds) if kind == "picture"]
    dropped = {row for row, stay in zip(picture, stays, strict=True) if not stay}
    return [row for row in range(len(kinds)) if row not in dropped]


def _middles(side: int, factor: int) -> set[int]:
    cells = max(1, side // factor)
    return {(2 * cell + 1) * side // (2 * cells) for cell in range(cells)}
