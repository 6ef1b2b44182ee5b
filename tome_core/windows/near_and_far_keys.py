"""The keys around a tile of queries in sets: how near a key lies decides how likely it is kept.

Attention is strongest between neighbours, so that all keys in a box around a tile stay: sliding
tile attention (arXiv 2502.04507, sec. 3). Many heads look along rows, columns or time
(PAROAttention, arXiv 2506.16054), so that more is kept of the keys in line with the box than of
all others. Reading the rest roughly in place of not at all is what piecewise sparse attention does
(arXiv 2602.01077).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from .geometry import Axes, Reach

ELSEWHERE = 16.0
"""One of so many keys is kept where they are not in line with the box. More of them are kept where
``factor`` is below 2, and all of them where it is 1."""

FRAMES, COLUMNS = 0, 2

AXES = "tyx"
TILES = "b h t y x q ..."
"""Queries are so before they are put together: Q of each tile along frames, rows and columns."""


@dataclass(frozen=True)
class KeySet:
    """Keys that lie in or out of a tile's box along each axis, of which one of some is kept.

    reaches: along frames, rows and columns. one_of: the mean share that is kept is 1 / one_of.
    """

    reaches: tuple[Reach, Reach, Reach]
    one_of: float

    @cached_property
    def sliding_axis(self) -> int:
        """Along it the keys of one tile after another overlap."""
        for reach in ("out", "in"):
            axes = [axis for axis, each in enumerate(self.reaches) if each == reach]
            if axes:
                return axes[-1]
        return COLUMNS

    @cached_property
    def row_axes(self) -> tuple[int, ...]:
        """The other axes along which each tile has keys of its own."""
        axes = (axis for axis, reach in enumerate(self.reaches) if reach != "all")
        return tuple(axis for axis in axes if axis != self.sliding_axis)

    @cached_property
    def pattern(self) -> str:
        """How ``TILES`` are put together as the set's keys are read, for einops: rows of tiles,
        tiles along the sliding axis, queries that read the same keys.
        """
        rows = [AXES[axis] for axis in self.row_axes]
        sliding = AXES[self.sliding_axis]
        joined = [axis for axis in AXES if axis not in (*rows, sliding)]
        return f"(b h {' '.join(rows)}) {sliding} ({' '.join([*joined, 'q'])}) ..."


def list_key_sets(axes: Axes, factor: float, temporal_factor: float) -> tuple[KeySet, ...]:
    """Every key of the picture is in one of the sets, for each tile. The box comes first.

    factor: one of so many keys in line with the box is kept. temporal_factor: of those in other
    frames than the box, one of so many times more.
    """
    split = [axis for axis in range(3) if axes[axis].is_split]
    one_of = 1.0, factor, min(ELSEWHERE, factor**4)  # out of the box along no axis, one, or two

    def find_reach(axis: int, out: tuple[int, ...]) -> Reach:
        """out: the first two axes along which keys are out; along later ones they lie anywhere."""
        if axis not in split or (len(out) == 2 and axis > out[1]):
            return "all"
        return "out" if axis in out else "in"

    def make(out: tuple[int, ...]) -> KeySet:
        reaches = find_reach(0, out), find_reach(1, out), find_reach(2, out)
        return KeySet(reaches, one_of[len(out)] * (temporal_factor if FRAMES in out else 1.0))

    return tuple(make(out) for count in range(3) for out in combinations(split, count))
