"""The two kinds of model, by the names that the command line has for them."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import torch
from comfy.model_patcher import ModelPatcher
from torch import Tensor, nn

from .flux import FluxShape
from .unet import UNetShape


class Shape(Protocol):
    """How large a model is; a dataclass of numbers."""

    kind: ClassVar[str]

    def config(self) -> dict[str, Any]:
        """What ComfyUI builds the model from, all but what it computes in."""
        ...

    def build(
        self,
        scales: Tensor,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> ModelPatcher:
        """MODEL with weights yet to be set, as a patcher. dtype: of weights and of computing.

        scales: (12,), of the latent's channels.
        """
        ...

    def initialise(self, network: nn.Module, seed: int) -> None:
        """Random weights to train from; every residual branch starts as nothing."""
        ...


SHAPES: dict[str, type[UNetShape] | type[FluxShape]] = {
    shape.kind: shape for shape in (UNetShape, FluxShape)
}
