"""A custom node for the tests' server: a model whose attention no node can reach."""

from __future__ import annotations

import sys
from pathlib import Path

from comfy_api.latest import ComfyExtension, io

# For `benchmarks` and `support`. Last: `nodes` has to remain ComfyUI's own module.
sys.path += [str(Path(__file__).resolve().parents[up]) for up in (4, 3)]

from support.small_models import UNREACHED


class UnreachedModel(io.ComfyNode):
    """A small random model."""

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="UnreachedModel", category="tests", inputs=[], outputs=[io.Model.Output()]
        )

    @classmethod
    def execute(cls) -> io.NodeOutput:
        return io.NodeOutput(UNREACHED[0].build())


class UnreachedExtension(ComfyExtension):
    """Lists the node."""

    async def get_node_list(self) -> list[type[io.ComfyNode]]:
        return [UnreachedModel]


async def comfy_entrypoint() -> ComfyExtension:
    """ComfyUI calls this when it loads the folder."""
    return UnreachedExtension()
