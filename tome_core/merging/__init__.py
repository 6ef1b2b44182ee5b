"""Token merging: which tokens are similar, and how they become one (ToMe, arXiv 2210.09461).

``match_local`` and ``match_global`` find what is merged, and return it as a plan.
"""

from .destinations import Destinations, choose_every_kth, choose_random, choose_strided
from .global_matching import match_global
from .local_matching import match_local
from .plan import MergePlan, SlotPlan
from .planning import downsample_keys, plan_merging
from .settings import MergeSettings

__all__ = [
    "Destinations",
    "MergePlan",
    "MergeSettings",
    "SlotPlan",
    "choose_every_kth",
    "choose_random",
    "choose_strided",
    "downsample_keys",
    "match_global",
    "match_local",
    "plan_merging",
]
