"""When tensors that outlive a block are made, and when ComfyUI gets their memory back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import CallbacksMP

from ....tome_core.constants import PAUSES, forget_constants
from .state import KEY


def register_pause() -> None:
    """Have them made apart from what ComfyUI records of a block's allocations.

    Since 0.35 it may record them in one block and replay them in the next. What outlives a block is
    then an error or makes it record again.
    """
    try:
        from comfy.model_prefetch import pause_malloc_graph
    except ImportError:
        return  # this ComfyUI records none
    PAUSES.append(pause_malloc_graph)


def give_back_with(model: ModelPatcher) -> None:
    """Keep no tensors once ComfyUI unloads ``model`` or a clone of it.

    Also where it has another clone in its place, or drops the last reference to one: what it
    unloads later may know nothing of us.
    """
    model.add_callback_with_key(CallbacksMP.ON_DETACH, KEY, _give_back)


def _give_back(model: ModelPatcher, unpatch_all: bool) -> None:
    """unpatch_all: the model is unloaded, and not only a clone of it dropped or replaced."""
    if unpatch_all or not _runs:
        forget_constants()


_runs: set[object] = set()


@contextmanager
def keep_while_running() -> Iterator[None]:
    """No clone that is dropped takes from a run what it uses.

    The garbage collection may drop one at any time, in the middle of a run of another.
    """
    run = object()
    _runs.add(run)
    try:
        yield
    finally:
        _runs.discard(run)
