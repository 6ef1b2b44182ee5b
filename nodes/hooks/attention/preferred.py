"""The attention that a checkpoint asks for.

Newer versions of ComfyUI keep it in a ``ComfyAttention`` of each attention layer, and forget it in
every call of a model whose attention is overridden, as ours is.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from ..run.state import Run
from .call import Attention

DIFFERENT = "the attention that the checkpoint asks for in some of its layers is left out"


def find_preferred(model: nn.Module, run: Run) -> Attention | None:
    """What all attention layers of a model ask for; None where they ask for nothing, or differ.

    It is looked up once a run: a large model has thousands of modules.
    """
    if id(model) not in run.preferred:
        layers = (each for each in model.modules() if type(each).__name__ == "ComfyAttention")
        asked: set[Any] = {layer.function for layer in layers}
        run.preferred[id(model)] = next(iter(asked)) if len(asked) == 1 else None
        if len(asked) > 1:
            run.report.say(None, DIFFERENT)
    return run.preferred[id(model)]
