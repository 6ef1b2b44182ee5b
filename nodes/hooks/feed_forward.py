"""Token merging around the MLP of a transformer block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .run_state import CURRENT_CALL
from .unet_layers import LayerKey


@dataclass(frozen=True)
class MergedFeedForward:
    """Stands in for ``ff.forward`` as an object patch.

    The method and not the module: a module in its place would rename the parameters that LoRAs
    name. Holds no state of a run; without a plan for its layer it is ``forward``.
    """

    forward: Callable[[Tensor], Tensor]
    layer: LayerKey

    @torch.compiler.disable
    def __call__(self, x: Tensor) -> Tensor:
        call = CURRENT_CALL.get()
        plan = call.mlp_plans.pop(self.layer, None) if call is not None else None
        if plan is None or plan.shape != x.shape[:2]:
            return self.forward(x)
        return plan.unmerge(self.forward(plan.merge(x)))
