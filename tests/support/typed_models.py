"""Small models in the number types that users load theirs in, and the same ones in float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from torch import Generator, nn

from benchmarks.random_models import build_model, fill_weights

from .small_models import IMAGES, VIDEOS, SampleRequest, SmallModel
from .unet_sampling import sample
from .unets import CONFIGS


@dataclass(frozen=True)
class Types:
    """weights: the type they are loaded in. computing: of everything else."""

    weights: torch.dtype
    computing: torch.dtype

    @property
    def roundoff(self) -> float:
        """The largest relative error of rounding one number."""
        return torch.finfo(self.computing).eps / 2


TYPES = {
    "fp16": Types(torch.float16, torch.float16),
    "bf16": Types(torch.bfloat16, torch.bfloat16),
    "fp8 e4m3": Types(torch.float8_e4m3fn, torch.bfloat16),
    "fp8 e5m2": Types(torch.float8_e5m2, torch.bfloat16),
}


@dataclass(frozen=True, eq=False)
class TypedModel:
    """config, settings: see ``build_model``. sample: one step of one picture."""

    config: Any
    settings: dict[str, Any]
    sample: Callable[[ModelPatcher], Any]

    def __post_init__(self) -> None:
        # Flux's guidance, 3.5 times 1000, is no number of bfloat16: the unpatched model would be
        # off by 27 %.
        assert not self.settings.get("guidance_embed")

    @cache  # noqa: B019
    def build(self, types: Types) -> ModelPatcher:
        """As ComfyUI's loaders return it, its weights rounded to their type."""
        drawn = build_model(self.config, self.settings, fill=FILL)
        computing = None if types.weights == types.computing else types.computing
        return build_model(
            self.config,
            self.settings,
            fill=_copy_from(drawn),
            dtype=types.weights,
            computing=computing,
        )

    @cache  # noqa: B019
    def build_exact(self, types: Types) -> ModelPatcher:
        """The same numbers as weights, everything computed in float32."""
        return build_model(self.config, self.settings, fill=_copy_from(self.build(types)))


FILL = partial(fill_weights, scale=0.5)


def _copy_from(model: ModelPatcher) -> Callable[[nn.Module, Generator], None]:
    def copy(module: nn.Module, _: Generator) -> None:
        for name, weight in model.model.diffusion_model.state_dict().items():
            module.state_dict()[name].copy_(weight)

    return copy


def _sample_family(family: SmallModel, height: int, width: int) -> Callable[[ModelPatcher], Any]:
    request = SampleRequest.with_tokens(family, height, width, steps=1)
    return partial(request.sample, family=family)


FLUX, WAN = IMAGES[0], VIDEOS[0]
MODELS = {
    "SD15": TypedModel(*CONFIGS["SD15"], partial(sample, size=(24, 24), steps=1, cfg=1.0)),
    "Flux": TypedModel(
        FLUX.config, {**FLUX.settings, "guidance_embed": False}, _sample_family(FLUX, 16, 16)
    ),
    "Wan": TypedModel(WAN.config, dict(WAN.settings), _sample_family(WAN, 12, 16)),
}
