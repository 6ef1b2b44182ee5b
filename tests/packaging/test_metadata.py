"""pyproject.toml as comfy-cli and ComfyUI read it, and the documents beside it."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree
from pathlib import Path

from comfy_cli.registry.config_parser import extract_node_configuration

from devtools.comfyui import ARCHIVES

ROOT = Path(__file__).parents[2]
CONFIG = extract_node_configuration(str(ROOT / "pyproject.toml"))


def test_name_suits_the_registry() -> None:
    assert CONFIG.project.name == "token-merge"
    assert "comfy" not in CONFIG.project.name
    assert CONFIG.tool_comfy.display_name == "Token Merge"
    assert CONFIG.tool_comfy.publisher_id


def test_version_is_the_newest_of_the_changelog_with_its_date() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", changelog, re.MULTILINE)
    assert re.fullmatch(rf"{CONFIG.project.version} \(\d{{4}}-\d\d-\d\d\)", headings[0])


def test_needs_nothing_beside_comfyui() -> None:
    assert CONFIG.project.dependencies == []
    # comfy-cli empties a requirement that it cannot read.
    assert re.fullmatch(r">=\d+\.\d+\.\d+", CONFIG.project.supported_comfyui_version)


def test_the_lowest_comfyui_is_the_first_that_is_tested() -> None:
    """By ``devtools matrix``."""
    assert CONFIG.project.supported_comfyui_version == f">={ARCHIVES[0].comfyui}"


def test_licence_is_mit() -> None:
    text = (ROOT / CONFIG.project.license.file).read_text(encoding="utf-8")
    assert text.startswith("MIT License\n\nCopyright (c) Token Merge contributors\n")


def read_size(address: str) -> tuple[int, int]:
    """Width and height of a drawing of this tree, by the address at which the registry reads it."""
    repository = CONFIG.project.urls.repository.removeprefix("https://github.com/")
    start = f"https://raw.githubusercontent.com/{repository}/main/"
    assert address.startswith(start)
    image = xml.etree.ElementTree.parse(ROOT / address.removeprefix(start)).getroot()
    assert image.tag.endswith("svg")
    return int(image.get("width", 0)), int(image.get("height", 0))


def test_icon_is_square_and_small_enough_for_the_registry() -> None:
    width, height = read_size(CONFIG.tool_comfy.icon)
    assert 0 < width == height <= 400


def test_banner_has_the_shape_that_the_registry_asks_for() -> None:
    width, height = read_size(CONFIG.tool_comfy.banner_url)
    assert width > 0
    assert width * 9 == height * 21


def test_comfyui_finds_the_folder_with_the_help_pages() -> None:
    folder = sys.modules["token_merge"].WEB_DIRECTORY
    assert (ROOT / folder / "docs" / "TokenMerge.md").is_file()
