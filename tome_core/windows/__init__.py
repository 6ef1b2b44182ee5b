"""Local windows: a query reads all keys near it, and drawn ones farther away.

``attend`` is the attention of a whole sequence by a plan. ``attend_densely`` says what it computes.
"""

from .attention import attend
from .plan import WindowGeometry, WindowPlan, allows_merging
from .planning import plan_windows
from .queries import MergedQueries, Strips, cut_strips, merge_queries
from .reference import attend_densely

__all__ = [
    "MergedQueries",
    "Strips",
    "WindowGeometry",
    "WindowPlan",
    "allows_merging",
    "attend",
    "attend_densely",
    "cut_strips",
    "merge_queries",
    "plan_windows",
]
