"""Nodes that change how predictions become one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from comfy_extras.nodes_apg import APG
from comfy_extras.nodes_model_advanced import RescaleCFG
from comfy_extras.nodes_nag import NAGuidance
from comfy_extras.nodes_pag import PerturbedAttentionGuidance
from comfy_extras.nodes_perpneg import PerpNeg, PerpNegGuider
from comfy_extras.nodes_sag import SelfAttentionGuidance
from comfy_extras.nodes_tcfg import TCFG

from ..kinds import EVERY_KIND, UNETS
from ..other import Limit, Other, run_node
from ..sampler_call import SamplerCall

MIDDLE = Limit(
    "works in part",
    "another node computes the block's self-attention (middle",
    "the middle block, whose attention the other node computes, keeps all its tokens",
    modes=("every option",),
)


def empty_prompt() -> list[Any]:
    """As long as the others, so that all are in one batch."""
    return [[torch.zeros(1, 7, 32), {"pooled_output": torch.zeros(1, 1280)}]]


def guide_by_perp_neg(call: SamplerCall) -> SamplerCall:
    def make(model: ModelPatcher, call: SamplerCall) -> Any:
        prompts = (call.positive, call.negative, empty_prompt())
        return run_node(PerpNegGuider, model, *prompts, call.cfg, 1.0)

    return replace(call, make_guider=make)


OTHERS = (
    Other(
        "PerturbedAttentionGuidance",
        UNETS,
        lambda model: run_node(PerturbedAttentionGuidance, model, 3.0),
        limits=(MIDDLE,),
    ),
    Other(
        "Self-Attention Guidance",
        UNETS,
        lambda model: run_node(SelfAttentionGuidance, model, 0.5, 2.0),
        limits=(MIDDLE,),
    ),
    Other(
        "Normalized Attention Guidance",
        (*UNETS, "Flux"),
        lambda model: run_node(NAGuidance, model, 5.0, 0.5, 1.5),
    ),
    Other("Tangential Damping CFG", EVERY_KIND, partial(run_node, TCFG)),
    Other(
        "Adaptive Projected Guidance",
        EVERY_KIND,
        lambda model: run_node(APG, model, 1.0, 5.0, 0.5),
    ),
    Other("RescaleCFG", EVERY_KIND, lambda model: run_node(RescaleCFG, model, 0.7)),
    Other("Perp-Neg", UNETS, lambda model: run_node(PerpNeg, model, empty_prompt(), 1.0)),
    Other("Perp-Neg Guider", UNETS, change=guide_by_perp_neg),
)
