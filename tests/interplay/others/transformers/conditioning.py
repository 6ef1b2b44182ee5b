"""What is given beside the prompt, and prompts of other shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import comfy.controlnet
import comfy.ops
import comfy.sd
import torch
from comfy.clip_vision import Output
from comfy.ldm.flux.controlnet import ControlNetFlux
from comfy.ldm.flux.redux import ReduxImageEncoder
from support.small_models import SampleRequest, SmallModel
from support.small_models.image_settings import FLUX as FLUX_SETTINGS

from benchmarks.random_models import fill_weights
from nodes import (
    ConditioningSetTimestepRange,
    ControlNetApplyAdvanced,
    StyleModelApply,
)

from ...kinds import EVERY_KIND, FAMILY_OF_KIND
from ...other import Other, run_node
from ...sampler_call import SamplerCall
from ..schedule import paint_several

CPU = torch.device("cpu")


@cache
def build_control_net() -> comfy.controlnet.ControlNet:
    """Of XLabs's kind, which reads a picture."""
    net = ControlNetFlux(
        operations=comfy.ops.disable_weight_init,
        dtype=torch.float32,
        device=CPU,
        **FLUX_SETTINGS,
    )
    fill_weights(net, torch.Generator().manual_seed(3))
    return comfy.controlnet.ControlNet(net, load_device=CPU, extra_conds=["y", "guidance"])


def control(call: SamplerCall) -> SamplerCall:
    """In the first four fifths of the schedule."""
    height, width = (8 * side for side in call.noise.shape[-2:])
    picture = torch.rand(1, height, width, 3, generator=torch.Generator().manual_seed(4))
    positive, negative = ControlNetApplyAdvanced().apply_controlnet(
        call.positive, call.negative, build_control_net(), picture, 0.3, 0.0, 0.8
    )
    return replace(call, steps=3, positive=positive, negative=negative)


@cache
def build_style_model() -> comfy.sd.StyleModel:
    encoder = ReduxImageEncoder(16, 24)
    fill_weights(encoder, torch.Generator().manual_seed(1))
    return comfy.sd.StyleModel(encoder)


def add_style(call: SamplerCall, kind: str) -> SamplerCall:
    """Five tokens of a picture behind the prompt. kind: how their strength is lowered."""
    seen = Output()
    generator = torch.Generator().manual_seed(4)
    seen.last_hidden_state = torch.randn(1, 5, 16, generator=generator)
    positive = run_node(StyleModelApply, call.positive, build_style_model(), seen, 0.6, kind)
    return replace(call, positive=positive)


def with_lengths(family: SmallModel) -> Callable[[SamplerCall], SamplerCall]:
    """Three prompts, all of another length."""
    request = SampleRequest()

    def change(call: SamplerCall) -> SamplerCall:
        longer, shorter = request.prompt(family, 13, 55), request.prompt(family, 4, 56)
        return replace(call, positive=call.positive + longer, negative=shorter)

    return change


def take_turns(family: SmallModel) -> Callable[[SamplerCall], SamplerCall]:
    """Two prompts, each for a part of the schedule; in the middle, both."""
    limit = ConditioningSetTimestepRange().set_range

    def change(call: SamplerCall) -> SamplerCall:
        (first,) = limit(call.positive, 0.0, 0.6)
        (then,) = limit(SampleRequest().prompt(family, 9, 55), 0.3, 1.0)
        return replace(call, steps=4, positive=first + then)

    return change


OTHERS = (
    Other("ControlNet", ("Flux",), change=control),
    *(
        Other(f"Apply Style Model ({kind})", ("Flux",), change=partial(add_style, kind=kind))
        for kind in ("multiply", "attn_bias")
    ),
    *(
        Other("prompts of different lengths", (kind,), change=with_lengths(family))
        for kind, family in FAMILY_OF_KIND.items()
    ),
    *(
        Other("ConditioningSetTimestepRange", (kind,), change=take_turns(family))
        for kind, family in FAMILY_OF_KIND.items()
    ),
    Other("a batch of three", EVERY_KIND, change=paint_several),
)
