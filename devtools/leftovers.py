"""What finished runs left in this process: objects that are still alive, and freed memory."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections import Counter

OF_A_RUN = frozenset(
    {
        *("Run", "DrawIndex", "ModelCall", "ModelInputs", "RunReport", "LayerPlan"),
        *("UNetCall", "RunningBlock", "TransformerCall", "AttentionCall"),
        *("MergePlan", "ChoosingPlan", "InterpolationPlan", "WindowPlan"),
        *("Destinations", "DrawnKeys", "MergedQueries", "Sequence"),
    }
)
"""These are classes of the pack. What is kept for a grid, in a store of limited size, is not among
them."""

ROOMS = (".tome_core.", ".nodes.hooks.")
"""The names of their modules contain one of these; ComfyUI names the pack after its folder."""


def count_leftovers() -> dict[str, int]:
    """How many there are of each class, none of them a cycle that waits for its collection."""
    gc.collect()
    kinds = (type(each) for each in gc.get_objects())
    names = (
        kind.__name__
        for kind in kinds
        if kind.__name__ in OF_A_RUN and any(room in kind.__module__ for room in ROOMS)
    )
    return dict(Counter(names))


def give_memory_back() -> None:
    """Let the C library return what was freed to the system, where it can.

    It keeps freed memory for later, now more and now less of it. What is resident afterwards is
    memory in use.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim:
            trim(0)
