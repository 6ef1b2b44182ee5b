"""Token reduction for attention: PyTorch and einops only, knows nothing of ComfyUI."""

from .downsampling import DownsampleSettings, draw_groups
from .draws import Draws
from .grid import Stream, TokenGrid
from .layer import Layer
from .merging import (
    Destinations,
    MergePlan,
    MergeSettings,
    choose_every_kth,
    choose_random,
    choose_strided,
    match_global,
    match_local,
)
from .plan import Plan, Skipped
from .plan_layer import plan_layer
from .settings import Settings
from .windows import WindowPlan, attend

__all__ = [
    "Destinations",
    "DownsampleSettings",
    "Draws",
    "Layer",
    "MergePlan",
    "MergeSettings",
    "Plan",
    "Settings",
    "Skipped",
    "Stream",
    "TokenGrid",
    "WindowPlan",
    "attend",
    "choose_every_kth",
    "choose_random",
    "choose_strided",
    "draw_groups",
    "match_global",
    "match_local",
    "plan_layer",
]
