"""Reference pictures, whose tokens stand beside the picture's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from comfy.model_patcher import ModelPatcher
from comfy_extras.nodes_edit_model import ReferenceLatent
from comfy_extras.nodes_flux import FluxKontextMultiReferenceLatentMethod
from support.small_models import SmallModel

from ...kinds import FAMILIES
from ...other import Limit, Other, run_node
from ...sampler_call import Conditioning, SamplerCall
from .models import change_prompts, draw_latent, special

SIZES = ((8, 12), (12, 8))
"""The references' latents are so large: neither is as large as the picture."""


def add_references(call: SamplerCall, prompt: Conditioning) -> Conditioning:
    frames = call.noise.shape[2:-2]
    scale = call.noise.shape[-1] // 12  # cells of the latent per token
    for seed, (height, width) in enumerate(SIZES):
        size = (*frames, height * scale // 2, width * scale // 2)
        latent = {"samples": draw_latent(call, *size, seed=seed)}
        prompt = run_node(ReferenceLatent, prompt, latent)
    return prompt


def refer(call: SamplerCall) -> SamplerCall:
    return change_prompts(call, partial(add_references, call))


def refer_by(method: str) -> Callable[[SamplerCall], SamplerCall]:
    def change(call: SamplerCall) -> SamplerCall:
        return change_prompts(
            refer(call),
            lambda prompt: run_node(FluxKontextMultiReferenceLatentMethod, prompt, method),
        )

    return change


def refer_once(call: SamplerCall) -> SamplerCall:
    """The negative prompt has no reference, and so a shorter sequence."""
    return replace(call, positive=add_references(call, call.positive))


def edit(
    name: str, family: SmallModel, change: Callable[[SamplerCall], SamplerCall], **fields: Any
) -> Other:
    return special(name, "Flux", family, change, replace(family, references=None), **fields)


CACHED = Limit(
    "works in part",
    "another node gave it",
    "tokens are reduced in the first step, with exact_early_steps in none; later ones read keys "
    "that the other node has kept",
)
KONTEXT = FAMILIES["Flux Kontext"]
FLUX_2 = FAMILIES["Flux 2 with references at timestep zero"]


def cache_references(model: ModelPatcher) -> ModelPatcher:
    # An older ComfyUI has none.
    from comfy_extras.nodes_flux import FluxKVCache

    return run_node(FluxKVCache, model)


OTHERS = (
    *(
        edit(f"Edit Model Reference Method: {method}", family, refer_by(method))
        for method, family in (
            ("offset", KONTEXT),
            ("index", KONTEXT),
            ("uxo/uno", KONTEXT),
            # Flux 1 with a guidance of its own, as Kontext, fails with it in ComfyUI itself.
            ("index_timestep_zero", FLUX_2),
        )
    ),
    # Beside references there are fewer query groups, so that the errors of the two predictions
    # differ, and guidance multiplies the difference.
    edit("references for one of two prompts", KONTEXT, refer_once, most_error=5.0),
    edit("Qwen-Image-Edit references", FAMILIES["Qwen-Image Edit"], refer),
    edit(
        "Flux KV Cache",
        FLUX_2,
        lambda call: replace(refer_by("index_timestep_zero")(call), steps=3),
        patch=cache_references,
        limits=(CACHED,),
    ),
)
