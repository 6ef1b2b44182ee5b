"""Attention in parts that are joined by the log of the scores' sum, and keys that have weights."""

from .joining import join_parts
from .partial import PartialOutput, attend_part
from .weighed_keys import attend_weighed, attend_weighed_densely

__all__ = [
    "PartialOutput",
    "attend_part",
    "attend_weighed",
    "attend_weighed_densely",
    "join_parts",
]
