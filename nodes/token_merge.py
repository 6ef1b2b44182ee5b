"""The Token Merge node: merges similar tokens before attention, copies them back after it."""

from __future__ import annotations

from comfy_api.latest import io
from typing_extensions import override

from . import merge_inputs
from .inputs import pick
from .reduction_node import ReductionNode


class TokenMerge(ReductionNode):
    read = staticmethod(merge_inputs.read)

    @classmethod
    @override
    def define_schema(cls) -> io.Schema:
        return cls.make_schema(
            "TokenMerge",
            "Token Merge (ToMe)",
            "Makes a model faster: merges similar tokens before attention, lets them read fewer "
            "keys and values, and copies the result back to each of them (ToMe).",
            ("tome", "tomesd", "token merging"),
            pick(merge_inputs.list_inputs(), "model", "ratio", "start_percent", "end_percent"),
        )
