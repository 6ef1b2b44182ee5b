"""When tensors that outlive a block are made."""

from __future__ import annotations

from ....tome_core.constants import PAUSES


def enter_pause() -> None:
    """Have them made apart from what ComfyUI records of a block's allocations.

    Since 0.35 it may record them in one block and replay them in the next. What outlives a block is
    then an error or makes it record again.
    """
    try:
        from comfy.model_prefetch import pause_malloc_graph
    except ImportError:
        return  # this ComfyUI records none
    PAUSES.append(pause_malloc_graph)
