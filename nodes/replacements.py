"""Nodes of other packs that the page may open as ours, where the other pack is missing."""

from __future__ import annotations

from typing import Any

from comfy_api.latest import ComfyAPI, io

from .token_downsample_advanced import TokenDownsampleAdvanced

RENAMED = {"factor": "downsample_factor_depth_1", "factor_level_2": "downsample_factor_depth_2"}
"""Inputs of ours, and what ToDo's own node for ComfyUI (comfy-todo) calls them."""


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


async def register() -> None:
    """Tell the server; an older ComfyUI has no place for it."""
    replacements = getattr(ComfyAPI(), "node_replacement", None)
    if replacements is not None:
        await replacements.register(replace_todo())
