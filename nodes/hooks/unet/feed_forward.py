"""Token merging around the MLP of a UNet's transformer block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from comfy.model_patcher import ModelPatcher
from torch import Tensor

from ..run.state import find_attached
from .call import UNetCall
from .layers import SelfAttentionLayer

Forward = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class MergedFeedForward:
    """Stands in for ``ff.forward`` as an object patch.

    The method and not the module: a module in its place would rename the parameters that LoRAs
    name. Without a plan for its layer it does what ``forward`` does.

    found: the method at the time when the node was applied. other: it is another node's patch.
    """

    layer: SelfAttentionLayer
    found: Forward
    other: bool

    @torch.compiler.disable
    def __call__(self, x: Tensor) -> Tensor:
        attached = find_attached()  # ComfyUI gives the MLP tokens and nothing else
        call: UNetCall | None = attached.call if attached else None
        if call is None:
            return self.found(x)
        forward = self.found if self.other else self._look_up(call.unet)
        running = call.running
        if running is None or running.layer.key != self.layer.key:
            return forward(x)
        plan, running.mlp = running.mlp, None
        if plan is None or plan.shape != x.shape[:2]:
            return forward(x)
        return plan.unmerge(forward(plan.merge(x)))

    def _look_up(self, unet: torch.nn.Module) -> Forward:
        """The method of the module that runs: ComfyUI gives some clones modules of their own."""
        module = unet.get_submodule(f"{self.layer.path}.ff")
        forward: Forward = type(module).forward.__get__(module)
        return forward


def patch_feed_forward(model: ModelPatcher, layer: SelfAttentionLayer) -> None:
    """Add the patch to a clone that does not have it yet."""
    name = f"diffusion_model.{layer.path}.ff.forward"
    found = model.get_model_object(name)
    if not isinstance(found, MergedFeedForward):
        other = name in model.object_patches
        model.add_object_patch(name, MergedFeedForward(layer, found, other))
