"""Smaller grids of keys and values, and groups of queries that read other keys each."""

from .plan import ChoosingPlan
from .planning import explain_unreduced, plan_downsampling
from .query_groups import QueryGroups, choose_for_groups, cut_groups, draw_groups
from .settings import DownsampleSettings

__all__ = [
    "ChoosingPlan",
    "DownsampleSettings",
    "QueryGroups",
    "choose_for_groups",
    "cut_groups",
    "draw_groups",
    "explain_unreduced",
    "plan_downsampling",
]
