"""Prompts, and where and when they act."""

from __future__ import annotations

from dataclasses import replace

import torch

from nodes import (
    ConditioningCombine,
    ConditioningConcat,
    ConditioningSetArea,
    ConditioningSetMask,
    ConditioningSetTimestepRange,
)

from ..kinds import UNETS
from ..other import Limit, Other, run_node
from ..sampler_call import Conditioning, SamplerCall


def second_prompt(tokens: int = 7) -> Conditioning:
    generator = torch.Generator().manual_seed(8)
    pooled = torch.randn(1, 1280, generator=generator)
    return [[torch.randn(1, tokens, 32, generator=generator), {"pooled_output": pooled}]]


def combine(call: SamplerCall, added: Conditioning) -> SamplerCall:
    return replace(call, positive=run_node(ConditioningCombine, call.positive, added))


def limit_to_area(call: SamplerCall) -> SamplerCall:
    """The second prompt acts on a part that is not square."""
    return combine(call, run_node(ConditioningSetArea, second_prompt(), 112, 96, 16, 32, 1.0))


def limit_by_mask(call: SamplerCall) -> SamplerCall:
    mask = torch.zeros(1, *call.noise.shape[-2:])
    mask[:, :5] = 1.0
    return combine(call, run_node(ConditioningSetMask, second_prompt(), mask, "default", 1.0))


def limit_to_mask_bounds(call: SamplerCall) -> SamplerCall:
    mask = torch.zeros(1, *call.noise.shape[-2:])
    mask[:, :9, 3:] = 1.0
    return combine(call, run_node(ConditioningSetMask, second_prompt(), mask, "mask bounds", 1.0))


def take_turns(call: SamplerCall) -> SamplerCall:
    early = run_node(ConditioningSetTimestepRange, call.positive, 0.0, 0.4)
    late = run_node(ConditioningSetTimestepRange, second_prompt(), 0.4, 1.0)
    return replace(call, positive=run_node(ConditioningCombine, early, late))


def lengthen(call: SamplerCall) -> SamplerCall:
    """A prompt of 23 tokens, beside a negative prompt of 7."""
    return replace(call, positive=run_node(ConditioningConcat, call.positive, second_prompt(16)))


FEW_TOKENS = Limit(
    "works in part",
    "tokens are too few to gain",
    "the coarser layers have few tokens in an area of the small picture here, and keep them",
    kinds=("SDXL",),
    modes=("every option",),
)
OTHERS = (
    Other("Conditioning (Set Area)", UNETS, change=limit_to_area, limits=(FEW_TOKENS,)),
    Other("Conditioning (Set Mask)", UNETS, change=limit_by_mask),
    Other(
        "Conditioning (Set Mask), mask bounds",
        UNETS,
        change=limit_to_mask_bounds,
        limits=(FEW_TOKENS,),
    ),
    Other("ConditioningSetTimestepRange", UNETS, change=take_turns),
    Other("prompts of different lengths", UNETS, change=lengthen),
)
