"""Nodes that change how predictions are joined."""

from __future__ import annotations

from functools import partial

from comfy_extras.nodes_apg import APG
from comfy_extras.nodes_nag import NAGuidance
from comfy_extras.nodes_pag import PerturbedAttentionGuidance
from comfy_extras.nodes_sag import SelfAttentionGuidance
from comfy_extras.nodes_tcfg import TCFG

from ..kinds import UNETS
from ..other import Limit, Other, run_node

MIDDLE = Limit(
    "works in part",
    "another node computes the block's self-attention (middle",
    "the middle block, whose attention the other node computes, keeps all its tokens",
    modes=("every option",),
)
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
        UNETS,
        lambda model: run_node(NAGuidance, model, 5.0, 0.5, 1.5),
    ),
    Other("Tangential Damping CFG", UNETS, partial(run_node, TCFG)),
    Other(
        "Adaptive Projected Guidance",
        UNETS,
        lambda model: run_node(APG, model, 1.0, 5.0, 0.0),
    ),
)
