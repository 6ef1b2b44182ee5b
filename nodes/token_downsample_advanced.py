"""The Token Downsample node with every input."""

from __future__ import annotations

from typing import Any

from comfy.model_patcher import ModelPatcher
from comfy_api.latest import io
from typing_extensions import override

from . import downsample_inputs
from .reduction_node import ReductionNode


class TokenDownsampleAdvanced(ReductionNode):
    @classmethod
    @override
    def define_schema(cls) -> io.Schema:
        return cls.make_schema(
            "TokenDownsampleAdvanced",
            "Token Downsample (Advanced)",
            "Token Downsample with every input, among them those of the published method, ToDo.",
            ("todo", "tome", "token downsampling"),
            downsample_inputs.list_inputs(),
        )

    @classmethod
    @override
    def execute(cls, model: ModelPatcher, **values: Any) -> io.NodeOutput:
        return cls.patch(model, downsample_inputs.read(values))
