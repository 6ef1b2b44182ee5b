"""pyproject.toml as comfy-cli and ComfyUI read it, and the documents beside it."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree
from pathlib import Path

from comfy_cli.registry.config_parser import extract_node_configuration
from token_merge.nodes import NODES

ROOT = Path(__file__).parents[2]
CONFIG = extract_node_configuration(str(ROOT / "pyproject.toml"))


def test_name_suits_the_registry() -> None:
    assert CONFIG.project.name == "token-merge"
    assert "comfy" not in CONFIG.project.name
    assert CONFIG.tool_comfy.display_name == "Token Merge"
    assert CONFIG.tool_comfy.publisher_id


def test_version_is_the_newest_of_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", changelog, re.MULTILINE)[0] == CONFIG.project.version


def test_needs_nothing_beside_comfyui() -> None:
    assert CONFIG.project.dependencies == []
    # comfy-cli empties a requirement that it cannot read.
    assert re.fullmatch(r">=\d+\.\d+\.\d+", CONFIG.project.supported_comfyui_version)


def test_licence_is_mit() -> None:
    text = (ROOT / CONFIG.project.license.file).read_text(encoding="utf-8")
    assert text.startswith("MIT License\n\nCopyright (c) Token Merge contributors\n")


def test_icon_exists_and_is_small_enough_for_the_registry() -> None:
    repository = CONFIG.project.urls.repository.removeprefix("https://github.com/")
    start = f"https://raw.githubusercontent.com/{repository}/main/"
    assert CONFIG.tool_comfy.icon.startswith(start)
    icon = ROOT / CONFIG.tool_comfy.icon.removeprefix(start)
    image = xml.etree.ElementTree.parse(icon).getroot()
    assert image.tag.endswith("svg")
    assert image.get("width") == image.get("height")
    assert int(image.get("width", 0)) <= 400


def test_comfyui_finds_the_folder_with_the_help_pages() -> None:
    folder = sys.modules["token_merge"].WEB_DIRECTORY
    pages = {page.stem for page in (ROOT / folder / "docs").glob("*.md")}
    assert pages == {node.GET_SCHEMA().node_id for node in NODES}
