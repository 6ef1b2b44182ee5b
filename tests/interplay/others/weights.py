"""Nodes that change weights."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import torch
from comfy.model_patcher import ModelPatcher
from comfy_extras.nodes_hooks import (
    ConditioningSetProperties,
    CreateHookKeyframe,
    CreateHookLoraModelOnly,
    SetHookKeyframes,
)
from comfy_extras.nodes_model_merging import ModelAdd, ModelMergeSimple, ModelSubtract

from nodes import LoraLoaderModelOnly

from ..files import save_lora
from ..kinds import KINDS, UNETS, Kind
from ..other import Other, run_node
from ..sampler_call import SamplerCall


@cache
def find_lora(kind: Kind) -> str:
    return save_lora(kind.name, kind.build())


def load_lora(model: ModelPatcher, kind: Kind) -> ModelPatcher:
    return run_node(LoraLoaderModelOnly, model, find_lora(kind), 1.0)


def add_lora(kind: Kind) -> Other:
    return Other("LoRA", (kind.name,), partial(load_lora, kind=kind))


def add_hook_lora(kind: Kind) -> Other:
    """A LoRA on the prompt alone, which is weaker in the second part of the schedule."""

    def change(call: SamplerCall) -> SamplerCall:
        hooks = run_node(CreateHookLoraModelOnly, find_lora(kind), 1.0)
        keyframes = run_node(CreateHookKeyframe, 1.0, 0.0)
        keyframes = run_node(CreateHookKeyframe, 0.3, 0.4, keyframes)
        hooks = run_node(SetHookKeyframes, hooks, keyframes)
        positive = run_node(ConditioningSetProperties, call.positive, 1.0, "default", hooks=hooks)
        return replace(call, positive=positive)

    return Other("hook LoRA with keyframes", (kind.name,), change=change)


@cache
def find_second(kind: Kind) -> ModelPatcher:
    """A model of the same kind with other weights, which is only read."""
    return kind.make(seed=9)


@cache
def find_difference(kind: Kind) -> ModelPatcher:
    """What ModelMergeSubtract leaves of two models that are much alike."""
    model = kind.make(seed=8)
    with torch.no_grad():
        for weight in model.model.diffusion_model.parameters():
            weight *= 0.1
    return model


def merge_models(kind: Kind) -> Other:
    return Other(
        "ModelMergeSimple",
        (kind.name,),
        lambda model: run_node(ModelMergeSimple, model, find_second(kind), 0.7),
    )


def add_difference(kind: Kind) -> Other:
    """What a second model has learned, without what it began with."""

    def patch(model: ModelPatcher) -> ModelPatcher:
        less = run_node(ModelSubtract, model, find_second(kind), 0.2)
        return run_node(ModelAdd, less, find_difference(kind))

    return Other("ModelSubtract, ModelAdd", (kind.name,), patch, slow=kind.name in UNETS)


OTHERS = tuple(
    make_row(kind)
    for make_row in (add_lora, add_hook_lora, merge_models, add_difference)
    for kind in KINDS
)
