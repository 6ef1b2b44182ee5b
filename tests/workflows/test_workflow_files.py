"""Every shipped workflow opens in the page and converts to what the server runs."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import comfy_extras.nodes_custom_sampler
import comfy_extras.nodes_flux
import comfy_extras.nodes_hunyuan
import comfy_extras.nodes_image_compare
import comfy_extras.nodes_lt
import comfy_extras.nodes_lt_audio
import comfy_extras.nodes_lt_upsampler
import comfy_extras.nodes_model_advanced
import comfy_extras.nodes_preview_any
import comfy_extras.nodes_primitive
import comfy_extras.nodes_sd3
import comfy_extras.nodes_video
import pytest
import token_merge
from comfy_api.latest import io
from comfy_cli.layout_quality import TITLE_H, score_workflow
from comfy_cli.link_integrity import broken_link_findings
from comfy_cli.workflow_to_api import convert_ui_to_api
from PIL import Image

import nodes as comfyui_nodes
from devtools import graph

FILES = sorted(graph.WORKFLOWS.glob("*.json"))
OURS = {
    node.define_schema().node_id: node
    for node in asyncio.run(asyncio.run(token_merge.comfy_entrypoint()).get_node_list())
}
NODES: dict[str, type] = {
    **comfyui_nodes.NODE_CLASS_MAPPINGS,
    **comfy_extras.nodes_model_advanced.NODE_CLASS_MAPPINGS,
    "CreateVideo": comfy_extras.nodes_video.CreateVideo,
    "EmptyHunyuanLatentVideo": comfy_extras.nodes_hunyuan.EmptyHunyuanLatentVideo,
    "EmptyLTXVLatentVideo": comfy_extras.nodes_lt.EmptyLTXVLatentVideo,
    "EmptySD3LatentImage": comfy_extras.nodes_sd3.EmptySD3LatentImage,
    "FluxGuidance": comfy_extras.nodes_flux.FluxGuidance,
    "PrimitiveInt": comfy_extras.nodes_primitive.Int,
    "ImageCompare": comfy_extras.nodes_image_compare.ImageCompare,
    "KSamplerSelect": comfy_extras.nodes_custom_sampler.KSamplerSelect,
    "LTXAVTextEncoderLoader": comfy_extras.nodes_lt_audio.LTXAVTextEncoderLoader,
    "LTXVAudioVAEDecode": comfy_extras.nodes_lt_audio.LTXVAudioVAEDecode,
    "LTXVAudioVAELoader": comfy_extras.nodes_lt_audio.LTXVAudioVAELoader,
    "LTXVConcatAVLatent": comfy_extras.nodes_lt.LTXVConcatAVLatent,
    "LTXVConditioning": comfy_extras.nodes_lt.LTXVConditioning,
    "LTXVEmptyLatentAudio": comfy_extras.nodes_lt_audio.LTXVEmptyLatentAudio,
    "LTXVLatentUpsampler": comfy_extras.nodes_lt_upsampler.LTXVLatentUpsampler,
    "LTXVSeparateAVLatent": comfy_extras.nodes_lt.LTXVSeparateAVLatent,
    "LatentUpscaleModelLoader": comfy_extras.nodes_hunyuan.LatentUpscaleModelLoader,
    "ManualSigmas": comfy_extras.nodes_custom_sampler.ManualSigmas,
    "PreviewAny": comfy_extras.nodes_preview_any.PreviewAny,
    "SamplerCustom": comfy_extras.nodes_custom_sampler.SamplerCustom,
    "SaveVideo": comfy_extras.nodes_video.SaveVideo,
    **OURS,
}
TWO_SAMPLERS = (graph.SECOND_PASS, graph.WAN, graph.LTX)
COMPARISON = "TokenReductionCompare"
LOADERS = (graph.LOADER, "UNETLoader", graph.LORA)
WIDGETS = ("INT", "FLOAT", "BOOLEAN", "STRING", "COMBO", "COMFY_DYNAMICCOMBO_V3")
PAGE = (1600, 1000)
FILLED = 0.75
"""The nodes fill this share of the page when a template is opened."""
EVERY_FILE = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
EVERY_EXAMPLE = pytest.mark.parametrize("path", graph.EXAMPLES, ids=lambda path: path.stem)


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


def to_api(workflow: dict[str, Any]) -> dict[str, dict[str, Any]]:
    types = {node["type"] for node in workflow["nodes"]} - {"MarkdownNote"}
    return convert_ui_to_api(workflow, {name: object_info(name) for name in types})


def list_inputs(name: str, given: dict[str, Any] | None = None) -> dict[str, tuple[Any, ...]]:
    """Input specifications (type, options) by name, in the order of the schema.

    given: values. Those that stand below a choice among them are last, as ComfyUI's SaveVideo has
    some from 0.33 on.
    """
    sections = object_info(name)["input"]
    inputs = {**sections.get("required", {}), **sections.get("optional", {})}
    below_choices = {
        f"{choice}.{below}": spec
        for choice, (kind, *about) in inputs.items()
        if kind == "COMFY_DYNAMICCOMBO_V3"
        for option in about[0]["options"]
        if option["key"] == (given or {}).get(choice)
        for section in option["inputs"].values()
        for below, spec in section.items()
    }
    return inputs | below_choices


def list_optional(name: str) -> set[str]:
    """Those that the page shows as sockets, or not at all."""
    optional = object_info(name)["input"].get("optional", {})
    return {one for one, spec in optional.items() if not _is_widget(spec) or "hidden" in spec[1]}


def _is_widget(spec: tuple[Any, ...]) -> bool:
    return isinstance(spec[0], list) or spec[0] in WIDGETS


def check_value(spec: tuple[Any, ...], value: Any) -> None:
    kind, options = spec[0], spec[1] if len(spec) > 1 else {}
    kind = options.get("widgetType", kind)  # of an input that takes several types
    if isinstance(kind, list) or kind == "COMBO":
        assert value in (kind if isinstance(kind, list) else options["options"])
    elif kind == "IMAGECOMPARE":
        assert value is None, "the widget shows and holds nothing"
    elif kind == "COMFY_DYNAMICCOMBO_V3":
        assert value in [option["key"] for option in options["options"]]
    elif kind == "BOOLEAN":
        assert isinstance(value, bool)
    elif kind in ("INT", "FLOAT"):
        assert isinstance(value, int if kind == "INT" else (int, float))
        assert not isinstance(value, bool)
        assert options["min"] <= value <= options["max"]
    else:
        assert isinstance(value, str)


def list_model_files(node: dict[str, Any]) -> list[dict[str, str]]:
    """Name, address and folder of each model file that a node of the page loads."""
    return node["properties"].get("models", [])


def test_there_is_an_example_for_each_kind_of_model() -> None:
    assert set(FILES) == {*graph.EXAMPLES, graph.COMPARE}


@EVERY_FILE
def test_title_can_stand_in_an_address_as_it_is(path: Path) -> None:
    """The page shows a template's file name, and puts it into addresses without quoting it."""
    assert re.fullmatch(r"[A-Za-z0-9_. -]+", path.stem)


@EVERY_FILE
def test_is_in_the_format_of_the_page(path: Path) -> None:
    workflow = graph.load(path)
    assert workflow["version"] == 0.4
    assert workflow["last_node_id"] == max(node["id"] for node in workflow["nodes"])
    assert workflow["last_link_id"] == max(link[0] for link in workflow["links"])
    assert any(node["type"] == "MarkdownNote" for node in workflow["nodes"])


@EVERY_FILE
def test_has_no_broken_links(path: Path) -> None:
    assert broken_link_findings(graph.load(path)) == ([], [])


@EVERY_FILE
def test_every_link_input_of_the_schema_is_connected(path: Path) -> None:
    api = to_api(graph.load(path))
    for node in api.values():
        kind, given = node["class_type"], set(node["inputs"])
        known = set(list_inputs(kind, node["inputs"]))
        assert known - given <= list_optional(kind), kind
        assert given <= known, kind
        for name, value in node["inputs"].items():
            if isinstance(value, list):
                assert value[0] in api, f"{kind}.{name} reads a node that is not run"


@EVERY_FILE
def test_values_fit_the_schema(path: Path) -> None:
    workflow = graph.load(path)
    files = {file["name"] for node in workflow["nodes"] for file in list_model_files(node)}
    for node in to_api(workflow).values():
        specs = list_inputs(node["class_type"], node["inputs"])
        for name, value in node["inputs"].items():
            if not isinstance(value, list) and value not in files:
                check_value(specs[name], value)


@EVERY_FILE
def test_our_nodes_hold_their_defaults_in_schema_order(path: Path) -> None:
    """A value in another place would silently set another input when the page loads the file."""
    found = [node for node in graph.load(path)["nodes"] if node["type"] in OURS]
    assert found
    for node in found:
        widgets = {
            name: spec[1] for name, spec in list_inputs(node["type"]).items() if _is_widget(spec)
        }
        if node["type"] != COMPARISON:  # which samples as the other workflows do
            defaults = [options["default"] for options in widgets.values()]
            assert node["widgets_values"] == defaults
        assert [slot["name"] for slot in node["inputs"] if "widget" in slot] == list(widgets)
        # The page adds a widget after an INT named seed unless the schema says that it must not.
        if "seed" in widgets:
            assert widgets["seed"]["control_after_generate"] is False


@EVERY_EXAMPLE
def test_samplers_keep_their_seed(path: Path) -> None:
    """So that the same picture comes with our node bypassed."""
    nodes = graph.load(path)["nodes"]
    kept = ["fixed" in node["widgets_values"] for node in nodes if node["type"] in graph.SAMPLERS]
    assert kept == [True] * (2 if path in TWO_SAMPLERS else 1)


@EVERY_EXAMPLE
def test_token_downsample_stands_directly_behind_each_loader(path: Path) -> None:
    api = to_api(graph.load(path))
    ours = [node for node in api.values() if node["class_type"] in OURS]
    assert {node["class_type"] for node in ours} == {"TokenDownsample"}
    assert len(ours) == (2 if path == graph.WAN else 1)
    for node in ours:
        assert api[node["inputs"]["model"][0]]["class_type"] in LOADERS


@EVERY_EXAMPLE
def test_the_last_pass_is_reduced_and_no_other(path: Path) -> None:
    api = to_api(graph.load(path))
    passes = [
        "TokenDownsample" in _list_patches(api, node)
        for node in api.values()
        if node["class_type"] in graph.SAMPLERS
    ]
    second_alone, both = [False, True], [True, True]
    expected = {graph.SECOND_PASS: second_alone, graph.WAN: both, graph.LTX: second_alone}
    assert passes == expected.get(path, [True])


def _list_patches(api: dict[str, Any], node: dict[str, Any]) -> list[str]:
    """Classes of the nodes that a sampler's model comes from, the nearest first."""
    found = []
    while "model" in node["inputs"]:
        node = api[node["inputs"]["model"][0]]
        found.append(node["class_type"])
    return found


def test_the_comparison_reads_the_original_and_the_patched_model() -> None:
    api = to_api(graph.load(graph.COMPARE))
    (inputs,) = (node["inputs"] for node in api.values() if node["class_type"] == COMPARISON)
    assert api[inputs["model"][0]]["class_type"] in LOADERS
    assert api[inputs["patched_model"][0]]["class_type"] in OURS


def test_token_merge_waits_bypassed_beside_token_downsample() -> None:
    nodes = {node["type"]: node for node in graph.load(graph.SD15)["nodes"]}
    assert nodes["TokenDownsample"]["mode"] == graph.RUNS
    assert nodes["TokenMerge"]["mode"] == graph.BYPASSED


@EVERY_FILE
def test_layout_is_readable(path: Path) -> None:
    workflow = graph.load(path)
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
        and y <= top - TITLE_H
        and left + node["size"][0] <= x + width
        and top + node["size"][1] <= y + height
    )


@EVERY_FILE
def test_opens_large_enough_to_read(path: Path) -> None:
    """The page scales a template so that its nodes fill three quarters of the page."""
    nodes = graph.load(path)["nodes"]
    corners = [(*node["pos"], *node["size"]) for node in nodes]
    width = max(x + wide for x, _, wide, _ in corners) - min(x for x, *_ in corners)
    height = max(y + high for _, y, _, high in corners) - min(y for _, y, *_ in corners)
    assert min(FILLED * PAGE[0] / width, FILLED * PAGE[1] / (height + TITLE_H)) > 0.8


@EVERY_FILE
def test_one_short_note_stands_on_top(path: Path) -> None:
    nodes = graph.load(path)["nodes"]
    (note,) = (node for node in nodes if node["type"] == "MarkdownNote")
    assert all(note["pos"][1] + note["size"][1] < n["pos"][1] for n in nodes if n is not note)
    lines = [line for line in note["widgets_values"][0].splitlines() if line]
    assert 4 <= len(lines) <= 6


@EVERY_EXAMPLE
def test_note_says_where_each_model_file_comes_from(path: Path) -> None:
    nodes = graph.load(path)["nodes"]
    (text,) = (node["widgets_values"][0] for node in nodes if node["type"] == "MarkdownNote")
    loaders = [node for node in nodes if list_model_files(node)]
    assert loaders
    for file in (file for node in loaders for file in list_model_files(node)):
        assert f"[{file['name']}]({file['url']})" in text
        assert f"models/{file['directory']}" in text
        assert file["url"].endswith(file["name"])


@EVERY_FILE
def test_notes_name_only_inputs_that_exist(path: Path) -> None:
    workflow = graph.load(path)
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
