"""What every node that reduces the tokens of a model has."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from comfy.model_patcher import ModelPatcher
from comfy_api.latest import io
from typing_extensions import override

from ..tome_core.settings import Settings
from . import inputs
from .hooks.page import find_node_id
from .hooks.registry import attach

ALIASES = (
    "accelerate",
    "加速",
    "가속",
    "fast",
    "faster",
    "speed up",
    "optimize",
    "performance",
    "vram",
    "attention",
)


class ReductionNode(io.ComfyNode):
    """Takes a MODEL and returns a patched clone. Its nodes define a schema and ``read``."""

    @staticmethod
    @abstractmethod
    def read(values: dict[str, Any]) -> Settings:
        """The settings that the values of the inputs ask for."""

    @staticmethod
    def make_schema(
        node_id: str,
        display_name: str,
        description: str,
        aliases: Sequence[str],
        widgets: list[io.Input],
    ) -> io.Schema:
        return io.Schema(
            node_id=node_id,
            display_name=display_name,
            category="model/patch",
            description=description,
            search_aliases=[*aliases, *ALIASES],
            inputs=widgets,
            outputs=[io.Model.Output(tooltip="The patched model. The input is not changed.")],
            hidden=[io.Hidden.unique_id],
            # Else ComfyUI would take the result of a node with the same inputs, here or in another
            # workflow, and with it the number of that node, which then gets our text.
            not_idempotent=True,
        )

    @classmethod
    def validate_inputs(
        cls, start_percent: float | None = None, end_percent: float | None = None
    ) -> bool | str:
        """Refuse what the ranges of single inputs cannot, before any node of the graph runs."""
        return inputs.explain_window(start_percent, end_percent) or True

    @classmethod
    @override
    def execute(cls, model: ModelPatcher, **values: Any) -> io.NodeOutput:
        """A patched clone of ``model``, whose settings report on this node of the page."""
        inputs.check_names(cls, values)
        return io.NodeOutput(attach(model, cls.read(values), find_node_id(cls)))
