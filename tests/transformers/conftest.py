"""Small real models of every family of transformers, and what reaches their attention."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from comfy.model_patcher import ModelPatcher
from token_merge import comfy_entrypoint

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def token_merge() -> Callable[..., ModelPatcher]:
    """The node Token Merge with its defaults, except what the test names."""
    return _node("TokenMerge")


@pytest.fixture(scope="session")
def token_downsample() -> Callable[..., ModelPatcher]:
    """The node Token Downsample with its defaults, except what the test names."""
    return _node("TokenDownsample")


def _node(node_id: str) -> Callable[..., ModelPatcher]:
    extension = asyncio.run(comfy_entrypoint())
    nodes = {node.GET_SCHEMA().node_id: node for node in asyncio.run(extension.get_node_list())}
    node = nodes[node_id]
    inputs = [widget for widget in node.GET_SCHEMA().inputs if widget.id != "model"]
    defaults = {widget.id: widget.default for widget in inputs}

    def execute(model: ModelPatcher, **inputs: Any) -> ModelPatcher:
        return node.execute(model, **{**defaults, **inputs}).args[0]

    return execute
