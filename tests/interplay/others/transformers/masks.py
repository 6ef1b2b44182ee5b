"""Prompts for a part of the picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from comfy_extras.nodes_video_model import ConditioningSetAreaPercentageVideo
from support.small_models import SampleRequest, SmallModel

from nodes import ConditioningSetArea, ConditioningSetMask

from ...kinds import FAMILY_OF_KIND
from ...other import Other, run_node
from ...sampler_call import SamplerCall


def second_prompt(family: SmallModel) -> list[object]:
    """Longer than the first."""
    return SampleRequest().prompt(family, 9, 55)


def in_area(call: SamplerCall) -> SamplerCall:
    """Two thirds of the picture's height and width."""
    prompt = second_prompt(FAMILY_OF_KIND["Flux"])
    area = run_node(ConditioningSetArea, prompt, 128, 128, 32, 16, 1.0)
    return replace(call, positive=call.positive + area)


def in_area_of_video(call: SamplerCall) -> SamplerCall:
    prompt = second_prompt(FAMILY_OF_KIND["Wan"])
    # width, height, frames; where they begin
    sides, corner = (0.5, 0.7, 0.67), (0.2, 0.1, 0.0)
    area = run_node(ConditioningSetAreaPercentageVideo, prompt, *sides, *corner, 1.0)
    return replace(call, positive=call.positive + area)


def in_mask(family: SmallModel, bounds: str) -> Callable[[SamplerCall], SamplerCall]:
    def change(call: SamplerCall) -> SamplerCall:
        mask = torch.zeros(1, *call.noise.shape[-2:])
        mask[:, 2:16, 4:16] = 1.0
        prompt = run_node(ConditioningSetMask, second_prompt(family), mask, bounds, 1.0)
        return replace(call, positive=call.positive + prompt)

    return change


OTHERS = (
    Other("Conditioning (Set Area)", ("Flux",), change=in_area),
    Other("Conditioning (Set Area)", ("Wan",), change=in_area_of_video),
    *(
        Other("Conditioning (Set Mask)", (kind,), change=in_mask(family, "default"))
        for kind, family in FAMILY_OF_KIND.items()
    ),
    Other(
        "Conditioning (Set Mask), mask bounds",
        ("Flux",),
        change=in_mask(FAMILY_OF_KIND["Flux"], "mask bounds"),
        not_tried={"Wan": "ComfyUI itself fails where the mask of a video sets an area"},
    ),
)
