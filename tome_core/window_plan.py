"""The plan of attention with local windows: which keys each tile of queries reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from .drawn_keys import DrawnKeys
from .merged_queries import MergedQueries
from .streams import Stream
from .tiled_axis import Axes


@dataclass(frozen=True, eq=False)
class WindowPlan:
    """All keys near a tile of queries, and drawn ones beyond, each of which stands for several.

    Each head reads other draws, as far as there are several, so that not all have the same error.
    All tokens that are not of the picture are read by every query. Their own queries read them and
    some keys of the whole picture.

    Args:
        stream: the sequence that attention reads.
        axes: tiles and boxes along frames, rows and columns.
        drawn: (S, N) int32, the keys of ``sets`` and of ``of_others`` in each of S draws.
        sets: the keys that the picture's queries read; each token of the picture is in one set.
        of_others: the keys of the picture that all other queries read; None where there are none.
        merged: queries that read the keys of ``far`` together, None where each reads them itself.

    Keys get their weights where attention is computed, so there are no ``sizes`` to be added.
    """

    stream: Stream
    axes: Axes
    drawn: Tensor
    sets: tuple[DrawnKeys, ...]
    of_others: DrawnKeys | None
    merged: MergedQueries | None = None

    groups = 1
    sizes = None
    window = True

    @property
    def tiles(self) -> tuple[int, int, int]:
        """Along frames, rows and columns."""
        frames, rows, columns = (axis.tiles for axis in self.axes)
        return frames, rows, columns

    @property
    def near(self) -> DrawnKeys:
        """The keys in the box, none of which is left out."""
        return self.sets[0]

    @property
    def far(self) -> tuple[DrawnKeys, ...]:
        """The keys out of the box."""
        return self.sets[1:]

    @property
    def slots(self) -> int:
        """Keys that a query reads, the mean over all queries; merged ones share what they read."""
        share = self.merged.share if self.merged else 1.0
        of_picture = self.near.window + share * sum(keys.window for keys in self.far)
        of_others = self.of_others.window if self.of_others else 0
        picture = self.stream.grid.tokens / self.stream.length
        return round(picture * of_picture + (1 - picture) * of_others) + self.stream.others

    @property
    def queries_left(self) -> int:
        """Queries that remain beyond their box, with all that are not of the picture."""
        share = self.merged.share if self.merged else 1.0
        return round(share * self.stream.grid.tokens) + self.stream.others

    @property
    def queries(self) -> Tensor:
        """The tokens of each tile: (T, Q) int64, tiles in raster order."""
        return number_queries(self.axes, self.stream.before, self.device)[0]

    @property
    def places(self) -> Tensor:
        """Where each token of the picture is in ``queries``, flattened. (N,) int64."""
        return number_queries(self.axes, self.stream.before, self.device)[1]

    @property
    def owned(self) -> Tensor:
        """The tokens of each tile, -1 for those that an earlier tile has, too. (T, Q) int32."""
        return _number_owned(self.axes, self.stream.before, self.device)

    @cached_property
    def read(self) -> Tensor:
        """``drawn``, then all tokens that are not of the picture. (S, N + n) int32."""
        if not self.stream.others:
            return self.drawn
        return torch.cat([self.drawn, self.owned_by_others.expand(len(self.drawn), -1)], dim=1)

    @property
    def others(self) -> Tensor:
        """The tokens that are not of the picture, (n,) int64."""
        return self.stream.number_others(self.device)

    @property
    def owned_by_others(self) -> Tensor:
        """The same as one tile. (1, n) int32."""
        return _number_others(self.stream, self.device)

    @property
    def device(self) -> torch.device:
        return self.drawn.device


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def number_queries(axes: Axes, before: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The tokens of each tile, (T, Q), and where each token is found there first, (N,). int64."""
    tile_of, inside = [], []
    numbers = torch.zeros(1, 1, dtype=torch.int64, device=device)
    for axis in axes:
        own = torch.arange(axis.tiles * axis.tile, device=device) % axis.length
        own = own.view(axis.tiles, axis.tile)
        numbers = numbers[:, None, :, None] * axis.length + own[None, :, None]
        numbers = numbers.flatten(2, 3).flatten(0, 1)
        place = torch.arange(axis.length, device=device)
        tile_of.append(place // axis.tile)
        inside.append(place % axis.tile)
    sides = [axis.tiles for axis in axes], [axis.tile for axis in axes]
    tile, within = (
        ((f[:, None, None] * side[1] + y[:, None]) * side[2] + x).flatten()
        for (f, y, x), side in zip((tile_of, inside), sides, strict=True)
    )
    return numbers + before, tile * numbers.shape[1] + within


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def _number_others(stream: Stream, device: torch.device) -> Tensor:
    return stream.number_others(device).int()[None]


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def _number_owned(axes: Axes, before: int, device: torch.device) -> Tensor:
    queries, places = number_queries(axes, before, device)
    owned = torch.full((queries.numel(),), -1, dtype=torch.int32, device=device)
    tokens = torch.arange(len(places), dtype=torch.int32, device=device) + before
    return owned.index_copy(0, places, tokens).view(queries.shape)
