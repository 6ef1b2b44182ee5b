"""Nodes for UNets, put on a transformer by mistake."""

from __future__ import annotations

from comfy_extras.nodes_attention_multiply import UNetSelfAttentionMultiply
from comfy_extras.nodes_freelunch import FreeU, FreeU_V2
from comfy_extras.nodes_hypernetwork import HypernetworkLoader
from comfy_extras.nodes_hypertile import HyperTile
from comfy_extras.nodes_model_downscale import PatchModelAddDownscale
from comfy_extras.nodes_pag import PerturbedAttentionGuidance
from comfy_extras.nodes_sag import SelfAttentionGuidance
from comfy_extras.nodes_tomesd import TomePatchModel

from ...kinds import TRANSFORMERS
from ...other import Limit, Other, run_node
from ..attention import find_hypernetwork

WITHOUT_EFFECT = (
    (
        "PatchModelAddDownscale (Kohya Deep Shrink)",
        PatchModelAddDownscale,
        (1, 2.0, 0.0, 1.0, True, "bicubic", "bicubic"),
    ),
    ("UNetSelfAttentionMultiply", UNetSelfAttentionMultiply, (1.1, 1.0, 1.0, 1.0)),
)
FAILING = (
    ("HyperTile", HyperTile, (64, 2, 0, False), "hypertile_in"),
    ("TomePatchModel", TomePatchModel, (0.3,), "tomesd_m"),
    ("FreeU", FreeU, (1.1, 1.2, 0.9, 0.2), "model_channels"),
    ("FreeU_V2", FreeU_V2, (1.3, 1.4, 0.9, 0.2), "model_channels"),
)


def fails(said: str) -> Limit:
    return Limit(
        "refused", said, "the other node itself fails on transformers, with our nodes or without"
    )


NO_EFFECT = "It has no effect on transformers, with our nodes or without"
SAG = "Self-Attention Guidance"


def guide_itself(model: object) -> object:
    return run_node(SelfAttentionGuidance, model, 0.5, 2.0)


OTHERS = (
    Other(
        "PerturbedAttentionGuidance",
        TRANSFORMERS,
        lambda model: run_node(PerturbedAttentionGuidance, model, 3.0),
        note="It has no effect on transformers but for rounding, with our nodes or without",
    ),
    *(
        Other(
            name,
            TRANSFORMERS,
            lambda model, node=node, inputs=inputs: run_node(node, model, *inputs),
            changes_picture=False,
            note=NO_EFFECT,
        )
        for name, node, inputs in WITHOUT_EFFECT
    ),
    Other(SAG, ("Wan",), guide_itself, changes_picture=False, note=NO_EFFECT),
    Other(SAG, ("Flux",), guide_itself, limits=(fails("has no attribute 'shape'"),)),
    Other(
        "Load Hypernetwork",
        TRANSFORMERS,
        lambda model: run_node(HypernetworkLoader, model, find_hypernetwork(), 0.5),
        limits=(fails("__call__"),),
    ),
    *(
        Other(
            name,
            TRANSFORMERS,
            lambda model, node=node, inputs=inputs: run_node(node, model, *inputs),
            limits=(fails(said),),
        )
        for name, node, inputs, said in FAILING
    ),
)
