"""When tensors that outlive a block are made, and when ComfyUI gets their memory back."""

from __future__ import annotations

import weakref

from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import CallbacksMP

from ....tome_core.constants import PAUSES, forget_constants
from ..settings_stack import SettingsStack
from .state import KEY


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


def give_back(model: ModelPatcher, unpatch_all: bool) -> None:
    """Where ComfyUI unloads ``model``, or has another clone of it in its place."""
    forget_constants()


def give_back_with(model: ModelPatcher) -> None:
    """Keep no tensors once ``model`` or a clone of it is unloaded."""
    model.add_callback_with_key(CallbacksMP.ON_DETACH, KEY, give_back)


def give_back_after(stack: SettingsStack) -> None:
    """Keep no tensors once no model has these settings.

    Its clone may be gone when ComfyUI unloads the model, which then knows nothing of us.
    """
    weakref.finalize(stack, forget_constants).atexit = False
