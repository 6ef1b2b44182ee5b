"""Context windows: a model sees a part of a batch or of a video at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import comfy.context_windows
from comfy.model_patcher import ModelPatcher
from comfy_extras.nodes_context_windows import (
    ContextWindowsManualNode,
    WanContextWindowsManualNode,
)

from ...kinds import FAMILIES, WAN, call_transformer
from ...other import Other, run_node
from ..schedule import paint_several
from .models import give_picture, special

SCHEDULES = comfy.context_windows.ContextSchedules


def window_batch(schedule: str) -> Callable[[ModelPatcher], ModelPatcher]:
    return lambda model: run_node(
        ContextWindowsManualNode, model, 2, 1, schedule, 1, False, "pyramid", 0, False
    )


def window_time(schedule: str) -> Callable[[ModelPatcher], ModelPatcher]:
    """Four frames of the latent at a time, one of them again in the next window."""
    return lambda model: run_node(
        WanContextWindowsManualNode, model, 13, 4, schedule, 1, False, "pyramid", True
    )


OTHERS = (
    Other(
        "Context Windows (Manual), over a batch",
        ("Flux",),
        window_batch(SCHEDULES.STATIC_STANDARD),
        change=paint_several,
        changes_picture=False,
        not_tried={"Wan": "Wan has nodes of its own for this, see Wan Context Windows"},
    ),
    *(
        Other(
            f"Wan Context Windows, {schedule}",
            ("Wan",),
            window_time(schedule),
            change=lambda call: call_transformer(WAN, (6, 8, 8)),
        )
        for schedule in (SCHEDULES.UNIFORM_STANDARD, SCHEDULES.UNIFORM_LOOPED)
    ),
    replace(
        special(
            "Wan Context Windows, image to video",
            "Wan",
            FAMILIES["Wan 2.1 I2V"],
            give_picture,
            grid=(6, 8, 8),
        ),
        patch=window_time(SCHEDULES.STATIC_STANDARD),
    ),
)
