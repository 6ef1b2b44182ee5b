"""The keys around a tile of queries in sets: how near a key lies decides how likely it is kept.

Attention is strongest between neighbours, so that all keys in a box around a tile stay: sliding
tile attention (arXiv 2502.04507, sec. 3). Many heads look along rows, columns or time
(PAROAttention, arXiv 2506.16054), so that more is kept of the keys in line with the box than of
all others. Reading the rest roughly in place of not at all is what piecewise sparse attention does
(arXiv 2602.01077).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from .tiled_axis import Axes, Reach

ELSEWHERE = 16.0
"""One of so many keys is kept where they are not in line with the box; of more where ``factor`` is
below 2, and of all of them where it is 1."""

FRAMES, COLUMNS = 0, 2


@dataclass(frozen=True)
class KeySet:
    """Keys that lie in or out of a tile's box along each axis, of which one of some is kept.

    reaches: along frames, rows and columns. one_of: the mean share that is kept is 1 / one_of.
    """

    reaches: tuple[Reach, Reach, Reach]
    one_of: float

    @property
    def windowed(self) -> int:
        """The axis along which the keys of one tile after another overlap."""
        for reach in ("out", "in"):
            axes = [axis for axis, each in enumerate(self.reaches) if each == reach]
            if axes:
                return axes[-1]
        return COLUMNS

    @property
    def rows(self) -> tuple[int, ...]:
        """The other axes along which each tile has keys of its own."""
        axes = (axis for axis, reach in enumerate(self.reaches) if reach != "all")
        return tuple(axis for axis in axes if axis != self.windowed)


def list_key_sets(axes: Axes, factor: float, temporal_factor: float) -> tuple[KeySet, ...]:
    """Every key of the picture is in one of the sets, for each tile. The box comes first.

    factor: one of so many keys in line with the box is kept. temporal_factor: of those in other
    frames than the box, one of so many times more.
    """
    split = [axis for axis in range(3) if axes[axis].is_split]

    def make(out: tuple[int, ...], whole: Iterator[int], one_of: float) -> KeySet:
        anywhere = {*range(3)} - {*split} | {*whole}
        reaches = [
            "all" if axis in anywhere else "out" if axis in out else "in" for axis in range(3)
        ]
        fewer = temporal_factor if FRAMES in out else 1.0
        return KeySet(tuple(reaches), one_of * fewer)  # type: ignore[arg-type]  # three of each

    box = make((), iter(()), 1.0)
    in_line = (make((axis,), iter(()), factor) for axis in split)
    # The first two axes along which a key is out: along later ones it may lie anywhere.
    elsewhere = (
        make(pair, (axis for axis in split if axis > pair[1]), min(ELSEWHERE, factor**4))
        for pair in combinations(split, 2)
    )
    return box, *in_line, *elsewhere
