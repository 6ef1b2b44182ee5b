"""Nodes that change how predictions are joined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import comfy.samplers
import torch
from comfy.model_patcher import ModelPatcher
from comfy_extras.nodes_cfg import CFGNorm, CFGZeroStar
from comfy_extras.nodes_custom_sampler import DualCFGGuider
from comfy_extras.nodes_eps import EpsilonScaling
from comfy_extras.nodes_fresca import FreSca
from comfy_extras.nodes_nag import NAGuidance
from comfy_extras.nodes_perpneg import PerpNeg, PerpNegGuider
from comfy_extras.nodes_slg import SkipLayerGuidanceDiT, SkipLayerGuidanceDiTSimple
from comfy_extras.nodes_video_model import VideoLinearCFGGuidance

from ...kinds import BY_NAME, EVERY_KIND, TRANSFORMERS, UNETS, Kind
from ...other import Other, run_node
from ...sampler_call import Conditioning, SamplerCall
from ..schedule import paint_several
from ..weights import find_second


def empty_prompt() -> Conditioning:
    """A third prompt, of as many tokens as the others."""
    embedding = torch.randn(1, 7, 24, generator=torch.Generator().manual_seed(9))
    return [[embedding, {"pooled_output": torch.linspace(-1, 1, 16)[None]}]]


def guide_by_three_prompts(model: ModelPatcher, call: SamplerCall) -> comfy.samplers.CFGGuider:
    return run_node(
        PerpNegGuider, model, call.positive, call.negative, empty_prompt(), call.cfg, 1.0
    )


def guide_twice(model: ModelPatcher, call: SamplerCall) -> comfy.samplers.CFGGuider:
    return run_node(
        DualCFGGuider, model, call.positive, empty_prompt(), call.negative, call.cfg, 2.0, "nested"
    )


def guide_by_second_model(kind: Kind) -> Callable[[SamplerCall], SamplerCall]:
    """The negative prompt is read by another model, with the options of the first."""

    def make(model: ModelPatcher, call: SamplerCall) -> comfy.samplers.CFGGuider:
        # An older ComfyUI has none.
        from comfy_extras.nodes_custom_sampler import DualModelGuider

        return run_node(
            DualModelGuider, model, call.positive, call.cfg, find_second(kind), call.negative
        )

    return lambda call: replace(call, make_guider=make)


OTHERS = (
    Other(
        "Normalized Attention Guidance",
        ("Wan",),
        lambda model: run_node(NAGuidance, model, 5.0, 0.5, 1.5),
        changes_picture=False,
        note="It has no effect on ComfyUI's Wan, with our nodes or without",
    ),
    Other(
        "SkipLayerGuidanceDiT",
        TRANSFORMERS,
        lambda model: run_node(SkipLayerGuidanceDiT, model, 3.0, 0.0, 1.0, "0", "1", 0.5),
        most_error=5.0,  # the guidance takes off one more prediction that has our error
    ),
    Other(
        "SkipLayerGuidanceDiTSimple",
        TRANSFORMERS,
        lambda model: run_node(SkipLayerGuidanceDiTSimple, model, 0.0, 1.0, "0", "1"),
    ),
    Other("FreSca", EVERY_KIND, lambda model: run_node(FreSca, model, 1.0, 1.25, 3)),
    Other("CFGZeroStar", EVERY_KIND, partial(run_node, CFGZeroStar)),
    Other("CFGNorm", EVERY_KIND, lambda model: run_node(CFGNorm, model, 1.0)),
    Other("CFGNorm before guidance", EVERY_KIND, lambda model: run_node(CFGNorm, model, 1.0, True)),
    Other("Epsilon Scaling", EVERY_KIND, lambda model: run_node(EpsilonScaling, model, 1.05)),
    Other(
        "VideoLinearCFGGuidance",
        (*UNETS, "Flux"),
        lambda model: run_node(VideoLinearCFGGuidance, model, 1.0),
        change=paint_several,
        not_tried={"Wan": "it is made for pictures as frames, and fails on a batch of videos"},
    ),
    Other("Perp-Neg", TRANSFORMERS, lambda model: run_node(PerpNeg, model, empty_prompt(), 1.0)),
    Other(
        "Perp-Neg Guider",
        TRANSFORMERS,
        change=lambda call: replace(call, make_guider=guide_by_three_prompts),
    ),
    Other(
        "Dual CFG Guider",
        TRANSFORMERS,
        change=lambda call: replace(call, make_guider=guide_twice),
    ),
    *(
        Other("Dual Model CFG Guider", (name,), change=guide_by_second_model(BY_NAME[name]))
        for name in TRANSFORMERS
    ),
)
