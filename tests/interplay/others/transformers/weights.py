"""Nodes that merge the blocks of one kind of model, and a LoRA on weights loaded in part."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from comfy.model_patcher import ModelPatcher
from comfy_extras.nodes_model_merging_model_specific import ModelMergeFlux1, ModelMergeWAN2_1

from ...kinds import BY_NAME, TRANSFORMERS, Kind
from ...other import Other, run_node
from ..weights import find_second, load_lora
from ..wrappers import half_loaded


def merge_blocks(node: object, kind: Kind, **shares: float) -> Callable[..., ModelPatcher]:
    return lambda model: run_node(node, model, find_second(kind), **shares)


OTHERS = (
    Other(
        "ModelMergeFlux1",
        ("Flux",),
        merge_blocks(
            ModelMergeFlux1,
            BY_NAME["Flux"],
            **{"double_blocks.0.": 0.3, "single_blocks.1.": 0.6},
        ),
    ),
    Other(
        "ModelMergeWAN2_1",
        ("Wan",),
        merge_blocks(ModelMergeWAN2_1, BY_NAME["Wan"], **{"blocks.0.": 0.3, "blocks.1.": 0.6}),
    ),
    *(
        Other(
            "weights that are loaded in part, with a LoRA",
            (name,),
            partial(load_lora, kind=BY_NAME[name]),
            situation=half_loaded,
        )
        for name in TRANSFORMERS
    ),
)
