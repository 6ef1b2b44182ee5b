"""The pack's own nodes, called through their schema as ComfyUI calls them."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

from comfy.model_patcher import ModelPatcher
from token_merge import comfy_entrypoint

from .settings import Setting


@cache
def _nodes() -> dict[str, Any]:
    extension = asyncio.run(comfy_entrypoint())
    nodes = asyncio.run(extension.get_node_list())
    return {node.GET_SCHEMA().node_id: node for node in nodes}


def apply(node_id: str, model: ModelPatcher, **inputs: Any) -> ModelPatcher:
    """The node's MODEL with the schema's defaults, except for ``inputs``."""
    node = _nodes()[node_id]
    widgets = node.GET_SCHEMA().inputs[1:]
    return node.execute(model, **{widget.id: widget.default for widget in widgets} | inputs).args[0]


def apply_in_all_steps(node_id: str, model: ModelPatcher, **inputs: Any) -> ModelPatcher:
    """The same, with early steps reduced too."""
    return apply(node_id, model, **{"exact_early_steps": False} | inputs)


def token_merge(model: ModelPatcher, setting: Setting, **inputs: Any) -> ModelPatcher:
    chosen = {"ratio": setting.ratio, "target": setting.target} | inputs
    return apply_in_all_steps("TokenMergeAdvanced", model, **chosen)


def token_downsample(model: ModelPatcher, setting: Setting, **inputs: Any) -> ModelPatcher:
    factor = float(setting.factor)
    return apply_in_all_steps("TokenDownsampleAdvanced", model, factor=factor, **inputs)
