"""Attention in parts that are joined by the log of the scores' sum, and keys that have weights."""

from .weighed_keys import attend_weighed, attend_weighed_densely

__all__ = ["attend_weighed", "attend_weighed_densely"]
