"""docs/models.md says of model families what the code does, and knows every family there is."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path

import comfy.model_base
import pytest
from support.comfyui_version import leave_out, leave_out_before
from token_merge.nodes.hooks.transformer.families import FAMILIES, SKIPPED_FAMILIES, Family

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
HELP = Path(__file__).parents[2] / "web" / "docs"
UNETS = "SD 1.x, SD 2.x, SDXL, SSD-1B, SVD's spatial layers"
# What ComfyUI loads as a model although it makes no pictures.
DETECTORS = {
    "comfy.ldm.rt_detr.rtdetr_v4.RTv4",
    "comfy.ldm.depth_anything_3.model.DepthAnything3Net",
    "comfy.ldm.sam3.detector.SAM3Model",
}
# 3D shapes and derived classes that the tables need not name: they are skipped as unknown.
UNNAMED = {
    "comfy.ldm.triposplat.model.LatentSeqMMFlowModel",
}


FIRST_VERSIONS: dict[str, str | None] = {
    "comfy.ldm.wan.model_animate2.WanAnimate2Model": "0.33.0",
    "comfy.ldm.minimax_music.dit.MiniMaxMusic3DiT": "0.33.0",
    "comfy.ldm.trellis2.model.Trellis2": "0.33.0",
    "comfy.ldm.qwen_image21.model.QwenImage21Transformer2DModel": None,
    "comfy.ldm.yue2.model.YuE2": None,
    "comfy.ldm.sensenova.model.SenseNovaU15": None,
}
"""These classes are newer than the ComfyUI on which the tests run by default. None stands for a
later version than all that were run."""


def table() -> str:
    """The rows that the page has to hold."""
    rows = [
        "| Models | Token Merge | Token Downsample | Remarks |",
        "| --- | --- | --- | --- |",
        f"| {UNETS} | works | works | |",
    ]
    for path, family in FAMILIES.items():
        remarks = "; ".join(list_remarks(path, family))
        rows.append(f"| {family.name} | works | works | {remarks}{' ' * bool(remarks)}|")
    for name, reason in SKIPPED_FAMILIES.values():
        rows.append(f"| {name} | skipped | skipped | {reason} |")
    return "\n".join(rows)


@pytest.mark.parametrize("page", sorted(HELP.rglob("*.md")), ids=lambda page: page.name)
def test_node_info_lists_every_model(page: Path) -> None:
    """The node says of a model that is not supported: see Node Info for the list."""
    text = " ".join(page.read_text(encoding="utf-8").split())
    comparing = "TokenReductionCompare" in str(page)
    assert ("; ".join([UNETS, *(each.name for each in FAMILIES.values())]) in text) != comparing
    assert ("; ".join(name for name, _ in SKIPPED_FAMILIES.values()) in text) != comparing


def list_remarks(path: str, family: Family) -> list[str]:
    if FIRST_VERSIONS.get(path, "") is None:
        return ["its ComfyUI was read and not run, a stand-in was tried"]
    if family.guides:
        return ["skipped with guides of another strength than 1, or smaller than the video"]
    return []


def test_the_page_shows_the_table() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), f"expected in docs/models.md:\n{table()}"


@pytest.mark.parametrize("path", [*FAMILIES, *SKIPPED_FAMILIES])
def test_every_named_model_class_exists(path: str) -> None:
    module, name = path.rsplit(".", 1)
    first = FIRST_VERSIONS.get(path, "0.30.0")
    if first is None and importlib.util.find_spec(module.rpartition(".")[0]) is None:
        leave_out(name, None)
    leave_out_before(first or "0.33.0", name)
    assert inspect.isclass(getattr(importlib.import_module(module), name))


def test_every_model_class_that_comfyui_loads_is_named() -> None:
    source = inspect.getsource(comfy.model_base)
    loaded = set(re.findall(r"unet_model=(comfy\.[\w.]+)", source)) - DETECTORS - UNNAMED
    known = set(FAMILIES)
    assert len(loaded) > 40
    assert loaded <= known | set(SKIPPED_FAMILIES)
