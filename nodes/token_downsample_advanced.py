"""The Token Downsample node with every input."""

from __future__ import annotations

from comfy_api.latest import io
from typing_extensions import override

from . import downsample_inputs
from .reduction_node import ReductionNode


class TokenDownsampleAdvanced(ReductionNode):
    read = staticmethod(downsample_inputs.read)

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
