"""Fewer cases than all of them: every two values of different axes stand together in one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import combinations, product

Case = tuple[Hashable, ...]


def cover_pairs(
    *axes: Sequence[Hashable], possible: Callable[..., bool] = lambda *_: True
) -> list[Case]:
    """Cases with a value of each axis, always the same ones: the next one has most new pairs.

    possible: whether a case exists. Pairs that stand in no possible case are left out.
    """
    cases = {case: _list_pairs(case) for case in product(*axes) if possible(*case)}
    missing = frozenset().union(*cases.values())
    chosen = []
    while missing:
        case = max(cases, key=lambda each: len(cases[each] & missing))
        chosen.append(case)
        missing -= cases[case]
    return chosen


def _list_pairs(case: Case) -> frozenset[Hashable]:
    return frozenset(combinations(enumerate(case), 2))
