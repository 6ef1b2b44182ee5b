"""The kinds of models, each with a small one of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import comfy.supported_models
import torch
from comfy.model_patcher import ModelPatcher
from support.small_models import IMAGES, VIDEOS, SampleRequest, SmallModel
from support.unets import SDXL, build_unet

from benchmarks.random_models import build_model, fill_weights

from .sampler_call import SamplerCall


@dataclass(frozen=True, eq=False)
class Kind:
    """build: the MODEL; shared, so nodes must not change it. call: samples a small latent with it.

    entry: a module of the diffusion model that runs once in each of its calls.
    """

    name: str
    build: Callable[[], ModelPatcher]
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


@cache
def build_sdxl() -> ModelPatcher:
    """With one transformer block where SDXL has several, for the sake of time."""
    return build_model(comfy.supported_models.SDXL, SHALLOW, fill=partial(fill_weights, scale=0.5))


def call_unet(side: int) -> SamplerCall:
    """A square picture from a fixed seed, with prompts of one length."""
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(1, 4, side, side, generator=generator)
    pooled = torch.randn(1, 1280, generator=generator)
    positive, negative = (
        [[torch.randn(1, 7, 32, generator=generator), {"pooled_output": pooled}]] for _ in range(2)
    )
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

KINDS = (
    Kind("SD 1.5", partial(build_unet, "SD15"), partial(call_unet, 16), "time_embed"),
    # Its finest self-attention is downsampled once.
    Kind("SDXL", build_sdxl, partial(call_unet, 24), "time_embed"),
    Kind("Flux", FLUX.build, partial(call_transformer, FLUX, (12, 12)), "img_in"),
    Kind("Wan", WAN.build, partial(call_transformer, WAN, (3, 10, 10)), "patch_embedding"),
)
UNETS = ("SD 1.5", "SDXL")
TRANSFORMERS = ("Flux", "Wan")
