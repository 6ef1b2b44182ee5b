"""Token reduction for attention: pure torch, knows nothing of ComfyUI."""

from .downsample import DownsamplePlan
from .grid import TokenGrid
from .matching import match_global
from .partition import Partition, seeded_generator, strided_partition
from .plan import MergePlan
from .schedule import PercentWindow, step_of_sigma
from .settings import DownsampleSettings, MergeSettings, Settings

__all__ = [
    "DownsamplePlan",
    "DownsampleSettings",
    "MergePlan",
    "MergeSettings",
    "Partition",
    "PercentWindow",
    "Settings",
    "TokenGrid",
    "match_global",
    "seeded_generator",
    "step_of_sigma",
    "strided_partition",
]
