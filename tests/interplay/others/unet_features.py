"""Nodes that change the features inside a UNet."""

from __future__ import annotations

from comfy_extras.nodes_freelunch import FreeU, FreeU_V2
from comfy_extras.nodes_model_downscale import PatchModelAddDownscale

from ..kinds import UNETS
from ..other import Limit, Other, run_node

SHRINK = (1, 2.0, 0.0, 0.4, True, "bicubic", "bicubic")

OTHERS = (
    Other("FreeU", UNETS, lambda model: run_node(FreeU, model, 1.1, 1.2, 0.9, 0.2)),
    Other("FreeU_V2", UNETS, lambda model: run_node(FreeU_V2, model, 1.3, 1.4, 0.9, 0.2)),
    Other(
        "PatchModelAddDownscale (Kohya Deep Shrink)",
        UNETS,
        lambda model: run_node(PatchModelAddDownscale, model, *SHRINK),
        most_error=4.0,  # fewer tokens leave fewer keys (3.01 was seen)
        limits=(
            Limit(
                "works in part",
                "tokens are too few to gain",
                "the coarser layers, which the other makes coarser still, keep their few tokens",
                modes=("every option",),
            ),
        ),
    ),
)
