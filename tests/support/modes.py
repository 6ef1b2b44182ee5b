"""The ways in which a workflow uses our nodes: those that the tests go through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from comfy.model_patcher import ModelPatcher

from benchmarks import ours

MERGE, DOWNSAMPLE = "TokenMergeAdvanced", "TokenDownsampleAdvanced"


@dataclass(frozen=True, eq=False)
class Mode:
    """nodes: of ours, in their order, each with the inputs that are not its defaults. All act in
    early steps too.
    """

    name: str
    nodes: tuple[tuple[str, dict[str, Any]], ...]

    def __str__(self) -> str:
        return self.name

    def put_on(self, model: ModelPatcher) -> ModelPatcher:
        """A clone of ``model`` with our nodes."""
        for node_id, inputs in self.nodes:
            model = ours.apply_in_all_steps(node_id, model, **inputs)
        return model


EVERY_OPTION = (
    (
        MERGE,
        {
            "ratio": 0.6,
            "max_downsample": "4",
            "target": "queries",
            "end_percent": 0.9,
            "stride_x": 3,
            "seed": 5,
            "merge_cross_attention": True,
            "merge_mlp": True,
            "matching": "global",
            "max_tokens": 200,
        },
    ),
    (
        DOWNSAMPLE,
        {
            "factor": 1.5,
            "factor_level_2": 1.5,
            "end_percent": 0.9,
            "max_tokens": 150,
            "temporal_factor": 2.0,
            "seed": 6,
        },
    ),
)
MODES = (
    Mode("merge", ((MERGE, {"local_window": "off"}),)),
    Mode("downsample", ((DOWNSAMPLE, {"local_window": "off"}),)),
    Mode("stratified", ((DOWNSAMPLE, {"method": "stratified", "local_window": "off"}),)),
    Mode("local window", ((DOWNSAMPLE, {"local_window": "8"}),)),
    Mode("merged keys", ((MERGE, {"ratio": 0.5, "target": "queries, keys and values"}),)),
    Mode("every option", EVERY_OPTION),
)
UNPATCHED = Mode("unpatched", ())
EVERY_OTHER_OPTION = Mode(
    "every other option",
    (
        (MERGE, {"random_destinations": False, "max_downsample": "8", "end_percent": 0.5}),
        (DOWNSAMPLE, {"method": "area", "proportional_attention": False, "start_percent": 0.5}),
    ),
)
"""It has what the others leave at its default. The two nodes act one after the other."""
