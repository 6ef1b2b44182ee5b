"""The tokens of one layer, as planning sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from .draws import Draws
from .grid import TokenGrid
from .layer_size import LayerSize
from .local_matching import match_local
from .merged_queries import MergedQueries, Strips, merge_queries
from .partition import Destinations
from .plan import PicturePlan
from .query_groups import MOST_GROUPS
from .streams import Stream

Matching = Callable[[Tensor, TokenGrid, Destinations, int], PicturePlan]
"""metric, grid, dst and how many tokens become fewer: see ``match_global``."""

QueryMerging = Callable[[Tensor, Strips], MergedQueries]


@dataclass(frozen=True)
class LayerTokens:
    """The tokens, and how they may be reduced.

    Args:
        stream: the sequence that the layer's attention reads.
        find_metric: gives (B, N, C), the picture's tokens that are compared; called only where
            tokens are compared.
        draws: of this layer in this run, on the device of its tensors; their turn is the step's.
        downsample, resolutions, channels: see ``LayerSize``.
        local_window: side of the box of exact keys around each tile of queries, 0: none.
        most_groups: that merged queries are split into.
        match_local, merge_queries: compare tokens, and merge queries of local windows; a GPU may
            have faster functions than those of this package.
        by_number: attention in windows will read keys by their numbers, where they lie. A GPU then
            starts few kernels, and tiles may have any number of queries.
    """

    stream: Stream
    find_metric: Callable[[], Tensor]
    draws: Draws
    downsample: int = 1
    resolutions: tuple[int, ...] = (1,)
    local_window: int = 0
    most_groups: int = MOST_GROUPS
    by_number: bool = False
    channels: int = 0
    match_local: Matching = match_local
    merge_queries: QueryMerging = merge_queries

    @property
    def size(self) -> LayerSize:
        return LayerSize(
            self.stream, self.draws.device, self.downsample, self.resolutions, self.channels
        )
