"""The plan of attention with local windows: which keys each tile of queries reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ..constants import constant
from ..grid import Stream
from ..layer import Precision
from .drawn_keys import DrawnKeys, KeyLayout, split_sets
from .geometry import Axes, number_queries
from .key_cells import KeyCells, list_key_cells
from .near_and_far_keys import KeySet
from .queries import MergedQueries


@dataclass(frozen=True, eq=False)
class WindowGeometry:
    """Tiles of queries, and the keys that each may read: nothing of it is drawn.

    Args:
        stream: the sequence that attention reads.
        axes: tiles and boxes along frames, rows and columns.
        tiles: T, along frames, rows and columns.
        cells: of all sets of keys, from which they are drawn.
        queries: (T, Q) int64, the tokens of each tile, tiles in raster order.
        places: (N,) int64, where each token of the picture is in ``queries``, flattened.
        owned: (T, Q) int32, the tokens of each tile, -1 for those that an earlier tile has, too.
        others: (n,) int64, the tokens that are not of the picture.
    """

    stream: Stream
    axes: Axes
    tiles: tuple[int, int, int]
    cells: KeyCells
    queries: Tensor
    places: Tensor
    owned: Tensor
    others: Tensor

    @cached_property
    def of_picture(self) -> tuple[KeyLayout, ...]:
        """The sets that the picture's queries read, their box first."""
        return self.cells.layouts[:-1] if self.stream.others else self.cells.layouts

    @cached_property
    def keys_read(self) -> int:
        """Of the picture by each of its queries, where none is merged."""
        return sum(layout.keys_read for layout in self.of_picture)

    def count_read(self, share: float) -> int:
        """Keys that a query reads, the mean over all queries.

        share: of the picture's queries, how many remain beyond their box; merged ones share what
        they read there.
        """
        stream, near = self.stream, self.of_picture[0].keys_read
        by_picture = near + share * (self.keys_read - near)
        by_others = self.cells.layouts[-1].keys_read if stream.others else 0
        picture = stream.grid.tokens / stream.length
        return round(picture * by_picture + (1 - picture) * by_others) + stream.others


@constant
def make_geometry(
    stream: Stream, axes: Axes, sets: tuple[KeySet, ...], device: torch.device
) -> WindowGeometry:
    """sets: of the picture's queries, and one more for all other queries where there are any."""
    queries, places = number_queries(axes, device)
    owned = torch.full((queries.numel(),), -1, dtype=torch.int32, device=device)
    tokens = torch.arange(len(places), dtype=torch.int32, device=device) + stream.before
    return WindowGeometry(
        stream=stream,
        axes=axes,
        tiles=(axes[0].tiles, axes[1].tiles, axes[2].tiles),
        cells=list_key_cells(axes, stream.before, sets, device),
        queries=queries + stream.before,
        places=places,
        owned=owned.index_copy(0, places, tokens).view(queries.shape),
        others=stream.number_others(device),
    )


@dataclass(frozen=True, eq=False)
class WindowPlan:
    """All keys near a tile of queries, and drawn ones beyond, each of which stands for several.

    Each head reads other draws, as far as there are several, so that not all have the same error.
    All tokens that are not of the picture are read by every query. Their own queries read them and
    some keys of the whole picture.

    Keys get their weights where attention is computed.

    Args:
        geometry: tiles of queries, and the cells of keys.
        drawn: (S, K) int32, the keys of all sets in each of S draws.
        merged: queries that read the keys of ``far`` together, None where each reads them itself.
        precision: of the scores, in a form that rounds.
    """

    geometry: WindowGeometry
    drawn: Tensor
    merged: MergedQueries | None = None
    precision: Precision = "exact"

    @cached_property
    def sets(self) -> tuple[DrawnKeys, ...]:
        """``drawn`` set by set; each token of the picture is in one set of its queries."""
        return split_sets(self.drawn, self.geometry.cells.layouts)

    @property
    def near(self) -> DrawnKeys:
        """The keys in the box, none of which is left out."""
        return self.sets[0]

    @property
    def far(self) -> tuple[DrawnKeys, ...]:
        """The keys out of the box."""
        return self.sets[1 : len(self.geometry.of_picture)]

    @property
    def of_others(self) -> DrawnKeys | None:
        """The keys of the picture that all other queries read; None where there are none."""
        return self.sets[-1] if self.geometry.stream.others else None

    @cached_property
    def read(self) -> Tensor:
        """``drawn``, then all tokens that are not of the picture. (S, K + n) int32."""
        others = self.geometry.others
        if not len(others):
            return self.drawn
        return torch.cat([self.drawn, others.int()[None].expand(len(self.drawn), -1)], dim=1)

    @property
    def keys_read(self) -> int:
        """The mean over all queries; merged ones share what they read beyond their box."""
        return self.geometry.count_read(self.merged.share if self.merged else 1.0)

    @property
    def queries_kept(self) -> int:
        """Queries that remain beyond their box, with all that are not of the picture."""
        stream = self.geometry.stream
        share = self.merged.share if self.merged else 1.0
        return round(share * stream.grid.tokens) + stream.others


def allows_merging(mask: Tensor | None) -> bool:
    """Whether queries can be merged: not where a mask hides other keys from each of them.

    mask: with queries before keys in its last two sides.
    """
    return mask is None or mask.shape[-2] == 1
