"""Nodes that change weights."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import comfy.supported_models
from comfy.model_patcher import ModelPatcher
from comfy_extras.nodes_hooks import (
    ConditioningSetProperties,
    CreateHookKeyframe,
    CreateHookLoraModelOnly,
    SetHookKeyframes,
)
from comfy_extras.nodes_model_merging import ModelAdd, ModelMergeSimple, ModelSubtract
from support.unets import SD15

from benchmarks.random_models import build_model, fill_weights
from nodes import LoraLoaderModelOnly

from ..files import save_lora
from ..kinds import KINDS, SHALLOW, UNETS, Kind
from ..other import Other, run_node
from ..sampler_call import SamplerCall


@cache
def find_lora(kind: Kind) -> str:
    return save_lora(kind.name, kind.build())


def add_lora(kind: Kind) -> Other:
    def patch(model: ModelPatcher) -> ModelPatcher:
        return run_node(LoraLoaderModelOnly, model, find_lora(kind), 1.0)

    return Other("LoRA", (kind.name,), patch)


def add_hook_lora(kind: Kind) -> Other:
    """A LoRA that half the schedule has, on the prompt and not on the negative prompt."""

    def change(call: SamplerCall) -> SamplerCall:
        hooks = run_node(CreateHookLoraModelOnly, find_lora(kind), 1.0)
        keyframes = run_node(CreateHookKeyframe, 1.0, 0.0)
        keyframes = run_node(CreateHookKeyframe, 0.3, 0.4, keyframes)
        hooks = run_node(SetHookKeyframes, hooks, keyframes)
        positive = run_node(ConditioningSetProperties, call.positive, 1.0, "default", hooks=hooks)
        return replace(call, positive=positive)

    return Other("hook LoRA with keyframes", (kind.name,), change=change)


CONFIGS = {
    "SD 1.5": (comfy.supported_models.SD15, SD15),
    "SDXL": (comfy.supported_models.SDXL, SHALLOW),
}


def build_second(kind: str) -> ModelPatcher:
    """A model of the same kind with other weights."""
    return build_model(*CONFIGS[kind], fill=partial(fill_weights, scale=0.5), seed=9)


find_second = cache(build_second)
"""One that is only read."""


def merge_models(name: str) -> list[Other]:
    """The nodes that make one model of two of the same kind."""
    second = partial(find_second, name)
    return [
        Other(
            "ModelMergeSimple",
            (name,),
            lambda model: run_node(ModelMergeSimple, model, second(), 0.7),
        ),
        Other(
            "ModelSubtract, ModelAdd",
            (name,),
            lambda model: run_node(
                ModelAdd, run_node(ModelSubtract, model, second(), 0.2), second()
            ),
            slow=True,
        ),
    ]


OTHERS = (
    *(add_lora(kind) for kind in KINDS if kind.name in UNETS),
    *(add_hook_lora(kind) for kind in KINDS if kind.name in UNETS),
    *(other for name in UNETS for other in merge_models(name)),
)
