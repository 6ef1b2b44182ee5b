"""Shared workflows depend on these names, orders, defaults and ranges: they must not drift."""

from __future__ import annotations

from typing import Any

import pytest
import requests

PERCENT = {"min": 0.0, "max": 1.0}
FACTOR = {"default": 1.0, "min": 1.0, "max": 8.0}
SWITCH = {"default": False}
RANDOM_METHODS = ["interleaved", "stratified"]
METHODS = [*RANDOM_METHODS, "nearest-exact", "nearest", "bilinear", "bicubic", "area", "max"]

# Input name -> (type, what the server must say about it), in the order of the page's widgets.
MODEL = {"model": ("MODEL", {})}
WINDOW = {
    "start_percent": ("FLOAT", {"default": 0.0, **PERCENT}),
    "end_percent": ("FLOAT", {"default": 1.0, **PERCENT}),
}
EARLY = {"exact_early_steps": ("BOOLEAN", {"default": True})}
RATIO = {"ratio": ("FLOAT", {"default": 0.2, "min": 0.0, "max": 0.9})}
DOWNSAMPLING = {"factor": ("FLOAT", {**FACTOR, "default": 2.0})}
LOCAL_WINDOW = {
    "local_window": (
        "COMBO",
        {"default": "auto", "options": ["auto", "off", "8", "12", "16", "24", "32"]},
    )
}
TARGETS = [
    "queries, downsampled keys and values",
    "queries, keys and values",
    "keys and values",
    "queries",
]
MATCHINGS = ["local", "global", "k-th", "random"]
SEED = {"seed": ("INT", {"default": 0, "min": 0, "max": 2**64 - 1})}
BUDGET = {"max_tokens": ("INT", {"default": 0, "min": 0})}
WEIGHTS = {"proportional_attention": ("BOOLEAN", {"default": True})}
SMALL_LAYERS = {
    "reduce_small_layers": ("COMBO", {"default": "auto", "options": ["auto", "always"]})
}

TOKEN_MERGE = {**MODEL, **RATIO, **EARLY}
TOKEN_DOWNSAMPLE = {**MODEL, **DOWNSAMPLING, **LOCAL_WINDOW, **EARLY}
TOKEN_MERGE_ADVANCED = {
    **MODEL,
    **RATIO,
    "max_downsample": ("COMBO", {"default": "auto", "options": ["auto", "1", "2", "4", "8"]}),
    "target": ("COMBO", {"default": TARGETS[0], "options": TARGETS}),
    **WINDOW,
    "stride_x": ("INT", {"default": 2, "min": 1, "max": 8}),
    "stride_y": ("INT", {"default": 2, "min": 1, "max": 8}),
    "random_destinations": ("BOOLEAN", {"default": True}),
    **SEED,
    "merge_cross_attention": ("BOOLEAN", SWITCH),
    "merge_mlp": ("BOOLEAN", SWITCH),
    "matching": ("COMBO", {"default": "local", "options": MATCHINGS}),
    **BUDGET,
    **WEIGHTS,
    **LOCAL_WINDOW,
    **SMALL_LAYERS,
    **EARLY,
}
TOKEN_DOWNSAMPLE_ADVANCED = {
    **MODEL,
    **DOWNSAMPLING,
    "factor_level_2": ("FLOAT", FACTOR),
    "method": ("COMBO", {"default": "interleaved", "options": METHODS}),
    **LOCAL_WINDOW,
    **WINDOW,
    **BUDGET,
    "temporal_factor": ("FLOAT", FACTOR),
    **WEIGHTS,
    **SEED,
    **SMALL_LAYERS,
    **EARLY,
}
NODES = {
    "TokenMerge": ("Token Merge (ToMe)", TOKEN_MERGE),
    "TokenDownsample": ("Token Downsample (ToDo)", TOKEN_DOWNSAMPLE),
    "TokenMergeAdvanced": ("Token Merge (Advanced)", TOKEN_MERGE_ADVANCED),
    "TokenDownsampleAdvanced": ("Token Downsample (Advanced)", TOKEN_DOWNSAMPLE_ADVANCED),
}
EVERY_NODE = pytest.mark.parametrize("node", NODES)
EVERY_INPUT = pytest.mark.parametrize(
    ("node", "name"),
    [(node, name) for node, (_, inputs) in NODES.items() for name in inputs],
)


def find_input(served: dict[str, Any], name: str) -> tuple[str, dict[str, Any]]:
    kind, options = served["input"]["required"][name]
    return kind, options


@EVERY_NODE
def test_is_served_under_its_name(node, object_info):
    served = object_info[node]
    assert served["display_name"] == NODES[node][0]
    assert served["output"] == ["MODEL"]
    assert served["python_module"] == "custom_nodes.token-merge"
    assert served["description"]


@EVERY_NODE
def test_inputs_come_in_the_order_that_saved_workflows_hold_them(node, object_info):
    order = object_info[node]["input_order"]
    assert order["required"] == list(NODES[node][1])
    assert not order.get("optional")


@EVERY_INPUT
def test_input_has_its_type_default_and_range(node, name, object_info):
    kind, said = NODES[node][1][name]
    served_kind, options = find_input(object_info[node], name)
    assert served_kind == kind
    assert {key: options.get(key) for key in said} == said


@EVERY_INPUT
def test_every_input_has_a_tooltip(node, name, object_info):
    assert len(find_input(object_info[node], name)[1].get("tooltip", "")) > 10


def test_a_workflow_that_lacks_todos_own_node_may_open_with_ours(server):
    reply = requests.get(f"{server.url}/api/node_replacements", timeout=30)
    (replacement,) = reply.json()["ToDoPatchModel"]
    assert replacement["new_node_id"] == "TokenDownsampleAdvanced"
    assert replacement["old_widget_ids"] == [
        "downsample_factor_depth_1",
        "downsample_factor_depth_2",
    ]
    mapped = {each["new_id"]: each for each in replacement["input_mapping"]}
    assert list(mapped) == [
        "model",
        *(name for name in TOKEN_DOWNSAMPLE_ADVANCED if name != "model"),
    ]
    assert mapped["factor"]["old_id"] == "downsample_factor_depth_1"
    assert mapped["method"]["set_value"] == "interleaved"
