"""What changes the weights of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import comfy.hooks
import comfy.sd
import torch
from comfy.model_patcher import ModelPatcher
from comfy_extras.nodes_hooks import CreateHookKeyframe, SetHookKeyframes, SetModelHooksOnCond
from comfy_extras.nodes_model_merging import ModelAdd, ModelMergeSimple, ModelSubtract
from comfy_extras.nodes_model_merging_model_specific import ModelMergeFlux1, ModelMergeWAN2_1
from support.small_models import SmallModel
from torch import Tensor

from benchmarks.random_models import build_model

from ...kinds import FLUX, TRANSFORMERS, WAN
from ...other import Other, run_node
from ...sampler_call import SamplerCall

FAMILIES = dict(zip(TRANSFORMERS, (FLUX, WAN), strict=True))
RANK = 4


@cache
def make_lora(family: SmallModel) -> dict[str, Tensor]:
    """Random, of all the blocks' layers, as a file of ComfyUI's own naming."""
    generator = torch.Generator().manual_seed(5)
    lora: dict[str, Tensor] = {}
    for key, weight in family.build().model.state_dict().items():
        if "block" in key and key.endswith(".weight") and weight.ndim == 2:
            outputs, inputs = weight.shape
            name = key.removesuffix(".weight")
            lora[f"{name}.lora_up.weight"] = torch.randn(outputs, RANK, generator=generator) / 2
            down = torch.randn(RANK, inputs, generator=generator)
            lora[f"{name}.lora_down.weight"] = down * inputs**-0.5 / 2
    return lora


@cache
def second_model(family: SmallModel) -> ModelPatcher:
    """With other weights."""
    return build_model(family.config, family.settings, seed=7)


@cache
def difference(family: SmallModel) -> ModelPatcher:
    """What ModelMergeSubtract leaves of two models that are much alike."""
    model = build_model(family.config, family.settings, seed=8)
    with torch.no_grad():
        for weight in model.model.diffusion_model.parameters():
            weight *= 0.1
    return model


def load_lora(family: SmallModel) -> Callable[[ModelPatcher], ModelPatcher]:
    return lambda model: comfy.sd.load_lora_for_models(model, None, make_lora(family), 0.8, 0.0)[0]


def hook_lora(family: SmallModel) -> Callable[[SamplerCall], SamplerCall]:
    """On the prompt alone, and off in the first steps."""

    def change(call: SamplerCall) -> SamplerCall:
        hooks = comfy.hooks.create_hook_lora(make_lora(family), 1.0, 0.0)
        keyframes = run_node(CreateHookKeyframe, 0.0, 0.0)
        keyframes = run_node(CreateHookKeyframe, 1.0, 0.4, keyframes)
        hooks = run_node(SetHookKeyframes, hooks, keyframes)
        return replace(call, steps=3, positive=run_node(SetModelHooksOnCond, call.positive, hooks))

    return change


def merge(family: SmallModel) -> Callable[[ModelPatcher], ModelPatcher]:
    return lambda model: run_node(ModelMergeSimple, model, second_model(family), 0.7)


def add_difference(family: SmallModel) -> Callable[[ModelPatcher], ModelPatcher]:
    """What a second model has learned, without what it began with."""

    def patch(model: ModelPatcher) -> ModelPatcher:
        less = run_node(ModelSubtract, model, second_model(family), 0.2)
        return run_node(ModelAdd, less, difference(family))

    return patch


def merge_blocks(node: object, family: SmallModel, **shares: float) -> Callable[..., ModelPatcher]:
    return lambda model: run_node(node, model, second_model(family), **shares)


OTHERS = (
    *(Other("LoRA", (kind,), load_lora(family)) for kind, family in FAMILIES.items()),
    *(
        # Guidance multiplies what the LoRA does to one of the two prompts, our error with it.
        Other("hook LoRA with keyframes", (kind,), change=hook_lora(family), most_error=4.0)
        for kind, family in FAMILIES.items()
    ),
    *(
        Other(name, (kind,), patch(family))
        for name, patch in (
            ("ModelMergeSimple", merge),
            ("ModelSubtract, ModelAdd", add_difference),
        )
        for kind, family in FAMILIES.items()
    ),
    Other(
        "ModelMergeFlux1",
        ("Flux",),
        merge_blocks(ModelMergeFlux1, FLUX, **{"double_blocks.0.": 0.3, "single_blocks.1.": 0.6}),
    ),
    Other(
        "ModelMergeWAN2_1",
        ("Wan",),
        merge_blocks(ModelMergeWAN2_1, WAN, **{"blocks.0.": 0.3, "blocks.1.": 0.6}),
    ),
)
