"""Token reduction for attention: pure torch, knows nothing of ComfyUI."""

from .attention import mask_with_log_sizes, with_log_sizes
from .cells import Cells
from .downsample import DownsamplePlan
from .grid import TokenGrid
from .interleaving import Deal, InterleavedPlan
from .local_matching import match_local
from .matchers import plan_downsample, plan_merge, smaller_grid
from .matching import match_global
from .partition import (
    Partition,
    kth_partition,
    random_partition,
    seeded_generator,
    strided_destinations,
    strided_partition,
)
from .plan import MergePlan
from .schedule import PercentWindow, step_of_sigma
from .settings import DownsampleSettings, MergeSettings, Settings, TransformerSettings
from .streams import Stream, StreamPlan
from .tile_plan import TilePlan, match_tiles
from .tiles import Tiling

__all__ = [
    "Cells",
    "Deal",
    "DownsamplePlan",
    "DownsampleSettings",
    "InterleavedPlan",
    "MergePlan",
    "MergeSettings",
    "Partition",
    "PercentWindow",
    "Settings",
    "Stream",
    "StreamPlan",
    "TilePlan",
    "Tiling",
    "TokenGrid",
    "TransformerSettings",
    "kth_partition",
    "mask_with_log_sizes",
    "match_global",
    "match_local",
    "match_tiles",
    "plan_downsample",
    "plan_merge",
    "random_partition",
    "seeded_generator",
    "smaller_grid",
    "step_of_sigma",
    "strided_destinations",
    "strided_partition",
    "with_log_sizes",
]
