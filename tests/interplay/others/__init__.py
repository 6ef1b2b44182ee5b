"""The other nodes, one file for each group of them."""

from ..other import Other
from . import guidance, wrappers

OTHERS: tuple[Other, ...] = (
    *guidance.OTHERS,
    *wrappers.OTHERS,
)
