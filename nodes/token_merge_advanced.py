"""The Token Merge node with every input."""

from __future__ import annotations

from comfy_api.latest import io
from typing_extensions import override

from . import merge_inputs
from .reduction_node import ReductionNode


class TokenMergeAdvanced(ReductionNode):
    read = staticmethod(merge_inputs.read)

    @classmethod
    @override
    def define_schema(cls) -> io.Schema:
        return cls.make_schema(
            "TokenMergeAdvanced",
            "Token Merge (Advanced)",
            "Token Merge with every input, among them those of the published methods: ToMe for "
            "Stable Diffusion, ToMe and ToMA.",
            ("tome", "tomesd", "toma", "token merging"),
            merge_inputs.list_inputs(),
        )
