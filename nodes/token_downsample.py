"""The Token Downsample nodes: attention reads fewer keys and values, and every query stays."""

from __future__ import annotations

from typing import Any

from comfy_api.latest import ComfyAPI, io
from typing_extensions import override

from ..tome_core.downsampling.settings import MAX_FACTOR, METHODS, MIN_FACTOR, DownsampleSettings
from .common import (
    ReductionNode,
    exact_early_steps,
    local_window,
    max_tokens,
    model_input,
    percent_inputs,
    pick,
    proportional_attention,
    reduce_small_layers,
    seed_input,
)

ALIASES = (
    *("todo", "tome", "token downsampling"),
    *("fast", "faster", "speed up", "accelerate", "加速", "가속", "optimize", "performance"),
    *("sage attention", "sparse attention"),
)
"""Who looks for more speed finds this node: the one to try first. The page sorts what it finds by
aliases by the lengths of names, so Token Merge would stand before it."""


def list_inputs() -> list[io.Input]:
    """In the order of the Advanced node."""
    return [
        model_input(),
        _factor(
            "factor",
            "Divides the height and the width of the grid of keys and values, in the layers at "
            "the finest resolution at which this model has self-attention. Without a local "
            "window, as on UNets by default, 2 keeps a quarter of the keys and values. 1 changes "
            "nothing in these layers.",
        ),
        _factor(
            "factor_level_2",
            "UNets: the same for the layers at the next coarser resolution. Useful for very large "
            "pictures.",
        ),
        io.Combo.Input(
            "method",
            options=list(METHODS),
            default=DownsampleSettings.method,
            tooltip="How keys and values are resampled. stratified keeps one token of each cell, "
            "a different one in each step until all were kept, so that errors do not add up. "
            "interleaved also splits the queries into groups, and each group reads keys of its "
            "own: a smaller error. nearest-exact always keeps the token in the middle.",
        ),
        local_window(
            "Side, in tokens, of the neighbourhood around each query in which all keys "
            "stay exact. Farther away fewer keys are read: with a factor of N, about 1 of N keys "
            "in the rows and columns of the neighbourhood and at its places in other frames (in "
            "pictures, with 12, a factor above 5 reads as many as 5), and about 1 of 16 keys "
            "elsewhere. auto: 12 on transformers, off on UNets, where it does not pay.",
        ),
        *percent_inputs("downsampling"),
        max_tokens(
            "Where the factors would keep more keys and values than this in a layer they act on, "
            "the grid is downsampled more."
        ),
        _factor(
            "temporal_factor",
            "Video transformers: divides the number of frames of keys and values too. 1 keeps "
            "every frame.",
        ),
        proportional_attention(
            "Transformers: ", "Without this, the prompt gains weight against the picture."
        ),
        seed_input("the tokens and groups that are random"),
        reduce_small_layers(),
        exact_early_steps(),
    ]


def _factor(name: str, tooltip: str) -> io.Input:
    return io.Float.Input(
        name,
        default=getattr(DownsampleSettings, name),
        min=MIN_FACTOR,
        max=MAX_FACTOR,
        step=0.25,
        tooltip=tooltip,
    )


class TokenDownsample(ReductionNode):
    settings = DownsampleSettings

    @classmethod
    @override
    def define_schema(cls) -> io.Schema:
        return cls.make_schema(
            "TokenDownsample",
            "Token Downsample (ToDo)",
            "Makes a model faster: attention reads its keys and values from a smaller "
            "grid, while every token keeps its own query (ToDo).",
            ALIASES,
            pick(list_inputs(), "model", "factor", "local_window", "exact_early_steps"),
        )


class TokenDownsampleAdvanced(ReductionNode):
    settings = DownsampleSettings

    @classmethod
    @override
    def define_schema(cls) -> io.Schema:
        return cls.make_schema(
            "TokenDownsampleAdvanced",
            "Token Downsample (Advanced)",
            "Token Downsample with every input, among them those of the published method, ToDo.",
            ALIASES,
            list_inputs(),
        )


RENAMED = {"factor": "downsample_factor_depth_1", "factor_level_2": "downsample_factor_depth_2"}
"""Each of these inputs of ours is called so by ToDo's own node for ComfyUI (comfy-todo)."""


def replace_todo() -> io.NodeReplace:
    """comfy-todo's node by ours. What it has no input for takes our defaults."""
    mapping: list[Any] = [{"new_id": "model", "old_id": "model"}]
    for widget in TokenDownsampleAdvanced.GET_SCHEMA().inputs[1:]:
        old = RENAMED.get(widget.id)
        taken = {"old_id": old} if old else {"set_value": widget.default}
        mapping.append({"new_id": widget.id, **taken})
    return io.NodeReplace(
        new_node_id="TokenDownsampleAdvanced",
        old_node_id="ToDoPatchModel",
        old_widget_ids=list(RENAMED.values()),
        input_mapping=mapping,
        output_mapping=[{"new_idx": 0, "old_idx": 0}],
    )


async def register_replacement() -> None:
    """Tell the server."""
    await ComfyAPI().node_replacement.register(replace_todo())
