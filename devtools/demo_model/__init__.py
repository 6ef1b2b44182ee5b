"""Nodes that stand in for a checkpoint, so that the workflows run with nothing downloaded.

For development only: linked into the sandbox's ComfyUI, no part of the shipped pack.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from comfy_api.latest import ComfyExtension, io, ui

# For `benchmarks`, which builds the models, and `devtools`. Last: `nodes` has to remain ComfyUI's
# own module.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from benchmarks.trained.places import WEIGHTS
from devtools.leftovers import count_leftovers, give_memory_back

from . import models, trained


class DemoModel(io.ComfyNode):
    """The outputs of ComfyUI's checkpoint loader, from seeded random weights."""

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="TokenMergeDemoModel",
            display_name="Token Merge Demo Model",
            category="token-merge/development",
            description="A small random UNet with SD 1.5's block structure, its CLIP and its VAE.",
            inputs=[io.Int.Input("seed", default=1, min=0, tooltip="Seed of the weights.")],
            outputs=[io.Model.Output(), io.Clip.Output(), io.Vae.Output()],
        )

    @classmethod
    def execute(cls, seed: int) -> io.NodeOutput:
        return io.NodeOutput(*models.build(seed))


class TrainedModel(io.ComfyNode):
    """The outputs of ComfyUI's checkpoint loader, from the weights in benchmarks/trained."""

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="TokenMergeTrainedModel",
            display_name="Token Merge Trained Model",
            category="token-merge/development",
            description="A small UNet with SD 1.5's blocks, Flux or Wan, trained on emoji. "
            "A token is 8 x 8 pixels.",
            inputs=[io.Combo.Input("kind", options=list(WEIGHTS))],
            outputs=[io.Model.Output(), io.Clip.Output(), io.Vae.Output()],
        )

    @classmethod
    def execute(cls, kind: str) -> io.NodeOutput:
        return io.NodeOutput(
            trained.load_model(kind), trained.build_text_encoder(), trained.SmallVAE()
        )


class Leftovers(io.ComfyNode):
    """What earlier prompts left in the process."""

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="TokenMergeLeftovers",
            display_name="Token Merge Leftovers",
            category="token-merge/development",
            description="Counts the objects of finished runs that are still alive, and gives freed "
            "memory back to the system.",
            inputs=[io.Int.Input("number", default=0, min=0, tooltip="A new one counts again.")],
            is_output_node=True,
        )

    @classmethod
    def execute(cls, number: int) -> io.NodeOutput:
        found = count_leftovers()
        give_memory_back()
        return io.NodeOutput(ui=ui.PreviewText(json.dumps(found)))


class DemoExtension(ComfyExtension):
    """Lists the nodes."""

    async def get_node_list(self) -> list[type[io.ComfyNode]]:
        return [DemoModel, TrainedModel, Leftovers]


async def comfy_entrypoint() -> ComfyExtension:
    """ComfyUI calls this when it loads the folder."""
    return DemoExtension()
