"""What must remain of attention's tokens, from the places that were found from outside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from .arranged_calls import arrange_call, arrange_kinds, blank_outputs
from .attention_record import AttentionRecord, RecordedCall
from .small_models import SampleRequest, SmallModel
from .token_places import find_places


@dataclass(frozen=True)
class CallPair:
    """One attention call as asked for and as it reached the kernel.

    kinds: of its rows, None where no node may touch it: refiners and cross-attention. All calls
    that have them are arranged as plans see them.
    """

    asked: RecordedCall
    reached: RecordedCall
    kinds: tuple[str, ...] | None


def pair_calls(
    record: AttentionRecord, family: SmallModel, run: SampleRequest
) -> Iterator[CallPair]:
    """All calls of a run of one step and one prompt."""
    places = find_places(family, run)
    alone = tuple(kind for kind in places.kinds if kind != "text")
    assert len(record.asked) == len(record.reached)
    for n, (asked, reached) in enumerate(zip(record.asked, record.reached, strict=True)):
        kinds = None
        queries, keys = asked.lengths
        # In some models part of the prompt is among the keys alone.
        itself = queries == keys or asked.lengths == record.asked[places.main].lengths
        if n >= places.main and itself:
            # Some models also attend among the picture and its references alone.
            kinds = {len(places.kinds): places.kinds, len(alone): alone}.get(keys)
            if kinds:
                asked, reached = arrange_call(asked, kinds), blank_outputs(reached)
                kinds = arrange_kinds(kinds)
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
