"""Our nodes as functions of a MODEL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from typing import Any

from comfy.model_patcher import ModelPatcher
from token_merge import comfy_entrypoint


@cache
def our_node(node_id: str) -> Callable[..., ModelPatcher]:
    """The node with its defaults, except what a call names."""
    extension = asyncio.run(comfy_entrypoint())
    nodes = {node.GET_SCHEMA().node_id: node for node in asyncio.run(extension.get_node_list())}
    node = nodes[node_id]
    defaults = {
        widget.id: widget.default for widget in node.GET_SCHEMA().inputs if widget.id != "model"
    }

    def execute(model: ModelPatcher, **inputs: Any) -> ModelPatcher:
        return node.execute(model, **{**defaults, **inputs}).args[0]

    return execute
