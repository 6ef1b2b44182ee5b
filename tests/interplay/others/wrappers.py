"""Wrappers around the model, and what else sits where ours do."""

from __future__ import annotations

from typing import Any

from comfy.model_patcher import ModelPatcher

from ..kinds import UNETS
from ..other import Limit, Other

OVERRIDE = "optimized_attention_override"


def override_by_the_same(model: ModelPatcher) -> ModelPatcher:
    """An attention override that calls what it replaces."""

    def attend(attention: Any, *args: Any, **kwargs: Any) -> Any:
        return attention(*args, **kwargs)

    clone = model.clone()
    clone.model_options["transformer_options"][OVERRIDE] = attend
    return clone


NO_WINDOW = Limit(
    "works in part",
    "local_window is left out: another node sets the attention function",
    "keys are reduced without a local window, which the other node's attention could not compute",
    modes=("local window",),
)
OTHERS = (
    Other(
        "an attention override that changes nothing",
        UNETS,
        override_by_the_same,
        changes_picture=False,
        limits=(NO_WINDOW,),
    ),
)
