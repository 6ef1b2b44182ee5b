"""Every shipped workflow opens in the page and converts to what the server runs."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import comfy_extras.nodes_image_compare
import comfy_extras.nodes_preview_any
import comfy_extras.nodes_primitive
import pytest
import token_merge
from comfy_api.latest import io
from comfy_cli.layout_quality import score_workflow
from comfy_cli.link_integrity import broken_link_findings
from comfy_cli.workflow_to_api import convert_ui_to_api
from PIL import Image

import nodes as comfyui_nodes

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "workflows").glob("*.json"))
OURS = {
    node.define_schema().node_id: node
    for node in asyncio.run(asyncio.run(token_merge.comfy_entrypoint()).get_node_list())
}
NODES: dict[str, type] = {
    **comfyui_nodes.NODE_CLASS_MAPPINGS,
    "PrimitiveInt": comfy_extras.nodes_primitive.Int,
    "ImageCompare": comfy_extras.nodes_image_compare.ImageCompare,
    "PreviewAny": comfy_extras.nodes_preview_any.PreviewAny,
    **OURS,
}
COMPARISON = "TokenReductionCompare"
EVERY_FILE = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def object_info(name: str) -> dict[str, Any]:
    """What the server says about a node under /object_info, as far as a conversion needs it."""
    node = NODES[name]
    if issubclass(node, io.ComfyNode):
        return node.GET_NODE_INFO_V1()
    inputs = node.INPUT_TYPES()
    return {
        "input": inputs,
        "input_order": {section: list(entries) for section, entries in inputs.items()},
        "output": node.RETURN_TYPES,
        "output_node": getattr(node, "OUTPUT_NODE", False),
        "name": name,
    }


def load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def to_api(workflow: dict[str, Any]) -> dict[str, dict[str, Any]]:
    types = {node["type"] for node in workflow["nodes"]} - {"MarkdownNote"}
    return convert_ui_to_api(workflow, {name: object_info(name) for name in types})


def list_inputs(name: str) -> dict[str, tuple[Any, ...]]:
    """Input specifications (type, options) by name, in the order of the schema."""
    sections = object_info(name)["input"]
    return {**sections.get("required", {}), **sections.get("optional", {})}


def check_value(spec: tuple[Any, ...], value: Any) -> None:
    kind, options = spec[0], spec[1] if len(spec) > 1 else {}
    if isinstance(kind, list) or kind == "COMBO":
        assert value in (kind if isinstance(kind, list) else options["options"])
    elif kind == "IMAGECOMPARE":
        assert value is None, "the widget shows and holds nothing"
    elif kind == "BOOLEAN":
        assert isinstance(value, bool)
    elif kind in ("INT", "FLOAT"):
        assert isinstance(value, int if kind == "INT" else (int, float))
        assert not isinstance(value, bool)
        assert options["min"] <= value <= options["max"]
    else:
        assert isinstance(value, str)


def test_the_three_workflows_are_there() -> None:
    assert [path.stem for path in FILES] == ["compare", "token_downsample", "token_merge"]


@EVERY_FILE
def test_is_in_the_format_of_the_page(path: Path) -> None:
    workflow = load(path)
    assert workflow["version"] == 0.4
    assert workflow["last_node_id"] == max(node["id"] for node in workflow["nodes"])
    assert workflow["last_link_id"] == max(link[0] for link in workflow["links"])
    assert any(node["type"] == "MarkdownNote" for node in workflow["nodes"])


@EVERY_FILE
def test_has_no_broken_links(path: Path) -> None:
    assert broken_link_findings(load(path)) == ([], [])


@EVERY_FILE
def test_every_link_input_of_the_schema_is_connected(path: Path) -> None:
    api = to_api(load(path))
    for node in api.values():
        assert set(node["inputs"]) == set(list_inputs(node["class_type"])), node["class_type"]
        for name, value in node["inputs"].items():
            if isinstance(value, list):
                assert value[0] in api, f"{node['class_type']}.{name} reads a node that is not run"


@EVERY_FILE
def test_values_fit_the_schema(path: Path) -> None:
    for node in to_api(load(path)).values():
        specs = list_inputs(node["class_type"])
        for name, value in node["inputs"].items():
            if not isinstance(value, list) and name != "ckpt_name":
                check_value(specs[name], value)


@EVERY_FILE
def test_our_nodes_hold_their_defaults_in_schema_order(path: Path) -> None:
    """A value in another place would silently set another input when the page loads the file."""
    found = [node for node in load(path)["nodes"] if node["type"] in OURS]
    assert found
    for node in found:
        widgets = {
            name: spec[1]
            for name, spec in list_inputs(node["type"]).items()
            if spec[0] in ("INT", "FLOAT", "BOOLEAN", "COMBO")
        }
        if node["type"] != COMPARISON:  # which samples as the other workflows do
            defaults = [options["default"] for options in widgets.values()]
            assert node["widgets_values"] == defaults
        assert [slot["name"] for slot in node["inputs"] if "widget" in slot] == list(widgets)
        # The page adds a widget after an INT named seed unless the schema says that it must not.
        if "seed" in widgets:
            assert widgets["seed"]["control_after_generate"] is False


@EVERY_FILE
def test_samplers_keep_their_seed(path: Path) -> None:
    """The comparison does so by itself: see the test above."""
    nodes = load(path)["nodes"]
    kept = [node["widgets_values"][1] for node in nodes if node["type"] == "KSampler"]
    assert kept == ([] if path.stem == "compare" else ["fixed"])


@EVERY_FILE
def test_model_passes_through_our_node(path: Path) -> None:
    api = to_api(load(path))
    sampler, plain, patched = ("KSampler", None, "model")
    if path.stem == "compare":
        sampler, plain, patched = (COMPARISON, "model", "patched_model")
    (inputs,) = (node["inputs"] for node in api.values() if node["class_type"] == sampler)
    assert api[inputs[patched][0]]["class_type"] in OURS
    assert plain is None or api[inputs[plain][0]]["class_type"] == "CheckpointLoaderSimple"


@EVERY_FILE
def test_layout_is_readable(path: Path) -> None:
    workflow = load(path)
    score = score_workflow(workflow)
    assert score.overlap_area == 0
    assert score.backward_edges == 0
    boxes = [group["bounding"] for group in workflow["groups"]]
    for number, (x, y, width, height) in enumerate(boxes):
        for x2, y2, width2, height2 in boxes[:number]:
            assert x + width <= x2 or x2 + width2 <= x or y + height <= y2 or y2 + height2 <= y
    for node in workflow["nodes"]:
        if node["type"] != "MarkdownNote":
            assert any(_holds(box, node) for box in boxes), f"{node['type']} is in no group"


def _holds(box: list[float], node: dict[str, Any]) -> bool:
    x, y, width, height = box
    left, top = node["pos"]
    return (
        x <= left
        and y <= top
        and left + node["size"][0] <= x + width
        and top + node["size"][1] <= y + height
    )


@EVERY_FILE
def test_notes_name_only_inputs_that_exist(path: Path) -> None:
    workflow = load(path)
    known = {
        name for node in workflow["nodes"] for name in (slot["name"] for slot in node["inputs"])
    }
    for note in (node for node in workflow["nodes"] if node["type"] == "MarkdownNote"):
        named = set(re.findall(r"`([a-z_0-9]+)`", note["widgets_values"][0]))
        assert named <= known, named - known


@EVERY_FILE
def test_has_a_thumbnail(path: Path) -> None:
    with Image.open(path.with_suffix(".jpg")) as image:
        assert image.format == "JPEG"
        assert 256 <= image.width <= 1024
        assert 144 <= image.height <= 1024
    assert path.with_suffix(".jpg").stat().st_size < 200_000
