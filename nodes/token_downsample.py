"""The Token Downsample node: attention to fewer keys and values, all queries kept."""

from __future__ import annotations

from comfy_api.latest import io
from typing_extensions import override

from . import downsample_inputs
from .inputs import pick
from .reduction_node import ReductionNode


class TokenDownsample(ReductionNode):
    read = staticmethod(downsample_inputs.read)

    @classmethod
    @override
    def define_schema(cls) -> io.Schema:
        return cls.make_schema(
            "TokenDownsample",
            "Token Downsample (ToDo)",
            "Makes a model faster: attention reads its keys and values from a smaller "
            "grid, while every token keeps its own query (ToDo).",
            ("todo", "tome", "token downsampling"),
            pick(
                downsample_inputs.list_inputs(),
                "model",
                "factor",
                "local_window",
                "start_percent",
                "end_percent",
            ),
        )
