"""Shared workflows depend on these names, orders, defaults and ranges: they must not drift."""

from __future__ import annotations

from typing import Any

import pytest

PERCENT = {"min": 0.0, "max": 1.0}

# Input name -> (type, what the server must say about it), in the order of the page's widgets.
TOKEN_MERGE = {
    "model": ("MODEL", {}),
    "ratio": ("FLOAT", {"default": 0.5, "min": 0.0, "max": 0.9}),
    "max_downsample": ("COMBO", {"default": "auto", "options": ["auto", "1", "2", "4", "8"]}),
    "target": (
        "COMBO",
        {
            "default": "queries, keys and values",
            "options": ["queries, keys and values", "keys and values", "queries"],
        },
    ),
    "start_percent": ("FLOAT", {"default": 0.0, **PERCENT}),
    "end_percent": ("FLOAT", {"default": 1.0, **PERCENT}),
    "stride_x": ("INT", {"default": 2, "min": 1}),
    "stride_y": ("INT", {"default": 2, "min": 1}),
    "random_destinations": ("BOOLEAN", {"default": True}),
    "seed": ("INT", {"default": 0, "min": 0}),
    "merge_cross_attention": ("BOOLEAN", {"default": False}),
    "merge_mlp": ("BOOLEAN", {"default": False}),
}
TOKEN_DOWNSAMPLE = {
    "model": ("MODEL", {}),
    "factor": ("FLOAT", {"default": 2.0, "min": 1.0, "max": 8.0}),
    "factor_level_2": ("FLOAT", {"default": 1.0, "min": 1.0, "max": 8.0}),
    "method": (
        "COMBO",
        {
            "default": "interleaved",
            "options": [
                "interleaved",
                "stratified",
                "nearest-exact",
                "nearest",
                "bilinear",
                "bicubic",
                "area",
                "max",
            ],
        },
    ),
    "start_percent": ("FLOAT", {"default": 0.0, **PERCENT}),
    "end_percent": ("FLOAT", {"default": 1.0, **PERCENT}),
    "local_window": (
        "COMBO",
        {"default": "auto", "options": ["auto", "off", "8", "12", "16", "24", "32"]},
    ),
}
ADVANCED = {
    "stride_x",
    "stride_y",
    "random_destinations",
    "seed",
    "merge_cross_attention",
    "merge_mlp",
}
NODES = {
    "TokenMerge": ("Token Merge", TOKEN_MERGE),
    "TokenDownsample": ("Token Downsample", TOKEN_DOWNSAMPLE),
}
INPUTS = [
    pytest.param(node, name, id=f"{node}-{name}")
    for node, (_, inputs) in NODES.items()
    for name in inputs
]


def find_options(served: dict[str, Any], name: str) -> dict[str, Any]:
    inputs = {**served["input"]["required"], **served["input"].get("optional", {})}
    return inputs[name][1]


@pytest.mark.parametrize("node", NODES)
def test_is_served_under_its_name(node, object_info):
    served = object_info[node]
    assert served["display_name"] == NODES[node][0]
    assert served["output"] == ["MODEL"]
    assert served["python_module"] == "custom_nodes.token-merge"
    assert served["description"]


@pytest.mark.parametrize("node", NODES)
def test_inputs_come_in_the_order_that_saved_workflows_hold_them(node, object_info):
    order = object_info[node]["input_order"]
    first = list(NODES[node][1])
    names = order["required"] + order.get("optional", [])
    assert names[: len(first)] == first
    # What came later stands behind them, where older workflows hold nothing, and folded away.
    for name in names[len(first) :]:
        assert find_options(object_info[node], name)["advanced"]


@pytest.mark.parametrize(("node", "name"), INPUTS)
def test_input_has_its_type_default_and_range(node, name, object_info):
    kind, said = NODES[node][1][name]
    inputs = object_info[node]["input"]
    served_kind, options = {**inputs["required"], **inputs["optional"]}[name]
    assert served_kind == kind
    assert {key: options.get(key) for key in said} == said


@pytest.mark.parametrize(("node", "name"), INPUTS)
def test_input_is_folded_away_where_it_is_advanced(node, name, object_info):
    options = find_options(object_info[node], name)
    assert bool(options.get("advanced")) == (name in ADVANCED)


@pytest.mark.parametrize("node", NODES)
def test_every_input_has_a_tooltip(node, object_info):
    for names in object_info[node]["input_order"].values():
        for name in names:
            assert len(find_options(object_info[node], name).get("tooltip", "")) > 10, name
