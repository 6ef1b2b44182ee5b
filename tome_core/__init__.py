"""Token reduction for attention: pure torch, knows nothing of ComfyUI."""

from .downsample_settings import DownsampleSettings
from .draws import Draws
from .global_matching import match_global
from .grid import TokenGrid
from .layer_size import LayerSize
from .layer_tokens import LayerTokens
from .local_matching import match_local
from .merge_settings import MergeSettings
from .partition import Destinations, choose_every_kth, choose_random, choose_strided
from .plan import MergePlan, Plan, Skipped
from .planning import explain_whole, plan_layer, plan_parts
from .query_groups import QueryGroups, draw_groups
from .settings import Settings
from .streams import Stream
from .tile_matching import match_tiles
from .window_attention import attend_windows
from .window_plan import WindowPlan

__all__ = [
    "Destinations",
    "DownsampleSettings",
    "Draws",
    "LayerSize",
    "LayerTokens",
    "MergePlan",
    "MergeSettings",
    "Plan",
    "QueryGroups",
    "Settings",
    "Skipped",
    "Stream",
    "TokenGrid",
    "WindowPlan",
    "attend_windows",
    "choose_every_kth",
    "choose_random",
    "choose_strided",
    "draw_groups",
    "explain_whole",
    "match_global",
    "match_local",
    "match_tiles",
    "plan_layer",
    "plan_parts",
]
