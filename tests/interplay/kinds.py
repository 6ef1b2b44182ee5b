"""The kinds of models, each with a small one of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import comfy.supported_models
import torch
from comfy.model_patcher import ModelPatcher
from support.small_models import IMAGES, VIDEOS, SampleRequest, SmallModel
from support.unet_sampling import draw_prompts
from support.unets import SD15, SDXL

from benchmarks.random_models import build_model, fill_weights

from .sampler_call import SamplerCall


@dataclass(frozen=True, eq=False)
class Kind:
    """build: the MODEL; shared, so nodes must not change it. make: a new one, whose weights are
    drawn from ``seed``. call: samples a small latent with it.

    entry: a module of the diffusion model that runs once in each of its calls.
    """

    name: str
    build: Callable[[], ModelPatcher]
    make: Callable[..., ModelPatcher]
    call: Callable[[], SamplerCall]
    entry: str

    def __str__(self) -> str:
        return self.name


SHALLOW = {
    **SDXL,
    "transformer_depth": [0, 1, 1],
    "transformer_depth_output": [0, 0, 1, 1, 1, 1],
    "transformer_depth_middle": 1,
}
"""This is SDXL with one transformer block where it has several, for the sake of time."""

CONFIGS = {
    "SD 1.5": (comfy.supported_models.SD15, SD15),
    "SDXL": (comfy.supported_models.SDXL, SHALLOW),
}


def make_unet(kind: str, seed: int = 0, **settings: Any) -> ModelPatcher:
    """settings: other ones than those of ``CONFIGS``."""
    config, usual = CONFIGS[kind]
    fill = partial(fill_weights, scale=0.5)
    return build_model(config, {**usual, **settings}, fill=fill, seed=seed)


def call_unet(side: int) -> SamplerCall:
    """A square picture from a fixed seed, with prompts of one length."""
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(1, 4, side, side, generator=generator)
    positive, negative = draw_prompts(generator)
    return SamplerCall(noise, torch.zeros_like(noise), positive, negative, "normal")


def call_larger_unet(call: SamplerCall) -> SamplerCall:
    """With the prompts of ``call``, a picture that can be cut into tiles."""
    return replace(call_unet(32), positive=call.positive, negative=call.negative)


def call_transformer(family: SmallModel, grid: tuple[int, ...]) -> SamplerCall:
    """A picture or video of ``grid`` tokens from a fixed seed."""
    request = SampleRequest(size=family.latent_size(*grid))
    noise = request.latent(family)
    positive = request.prompt(family, request.text, request.prompt_seed)
    negative = request.prompt(family, request.uncond_text, request.uncond_seed)
    return SamplerCall(noise, torch.zeros_like(noise), positive, negative, "simple")


FAMILIES = {family.name: family for family in (*IMAGES, *VIDEOS)}
FLUX, WAN = FAMILIES["Flux"], FAMILIES["Wan 2.1 T2V"]
FAMILY_OF_KIND = {"Flux": FLUX, "Wan": WAN}
GRIDS = {"Flux": (12, 12), "Wan": (3, 10, 10)}
UNETS, TRANSFORMERS = tuple(CONFIGS), tuple(FAMILY_OF_KIND)
EVERY_KIND = (*UNETS, *TRANSFORMERS)
# The finest self-attention of SDXL is downsampled once.
SIDES = {"SD 1.5": 16, "SDXL": 24}
ENTRIES = {"Flux": "img_in", "Wan": "patch_embedding"}

KINDS = (
    *(
        Kind(
            name,
            cache(partial(make_unet, name)),
            partial(make_unet, name),
            partial(call_unet, side),
            "time_embed",
        )
        for name, side in SIDES.items()
    ),
    *(
        Kind(
            name,
            family.build,
            partial(build_model, family.config, family.settings),
            partial(call_transformer, family, GRIDS[name]),
            ENTRIES[name],
        )
        for name, family in FAMILY_OF_KIND.items()
    ),
)
BY_NAME = {kind.name: kind for kind in KINDS}
