"""Help pages say of every input what its schema says, and what pages repeat is the same."""

from __future__ import annotations

import asyncio
import re
from math import isqrt
from pathlib import Path
from typing import Any

import comfy.samplers
import pytest
import token_merge
from comfy_api.latest import io
from token_merge.nodes.kernels.usable import LEAST_TRITON
from token_merge.tome_core.windows.planning import LEAST_FOR_WINDOWS

ROOT = Path(__file__).parents[2]
NODES = asyncio.run(asyncio.run(token_merge.comfy_entrypoint()).get_node_list())
SCHEMAS = {node.GET_SCHEMA().node_id: node.GET_SCHEMA() for node in NODES}
EVERY_NODE = pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
# Lists that grow with ComfyUI.
KSAMPLER = (comfy.samplers.KSampler.SAMPLERS, comfy.samplers.KSampler.SCHEDULERS)

# - `name` (default; accepts): text. A socket has no default.
ITEM = re.compile(
    r"^- `(?P<name>\w+)` \((?:(?P<default>[^;)]*); )?(?P<accepted>[^)]*)\):", re.MULTILINE
)


def read(node: str) -> str:
    return (ROOT / "web" / "docs" / f"{node}.md").read_text(encoding="utf-8")


def stated(text: str) -> list[tuple[str, str | None, str]]:
    """(input, default, what it accepts) in the order of the text."""
    section = text.split("\n## Inputs\n")[1].split("\n## ")[0]
    found = ITEM.finditer(section)
    return [(one["name"], one["default"], " ".join(one["accepted"].split())) for one in found]


def expected(schema: io.Schema) -> list[tuple[str, str | None, str]]:
    return [(item.id, _default(item), _accepted(item)) for item in schema.inputs]


def _default(item: io.Input) -> str | None:
    if not isinstance(item, io.WidgetInput):
        return None
    if isinstance(item, io.Combo.Input) and item.default is None:
        return str(item.options[0])
    return f"{item.default:g}" if isinstance(item, io.Float.Input) else _written(item.default)


def _accepted(item: io.Input) -> str:
    if isinstance(item, io.Combo.Input):
        return _options(item.options)
    if isinstance(item, io.Boolean.Input):
        return "true, false"
    if isinstance(item, io.Float.Input):
        return f"{item.min:g} to {item.max:g}"
    if isinstance(item, io.Int.Input):
        return f"{item.min} to {'2⁶⁴ - 1' if item.max == 2**64 - 1 else item.max}"
    return str(item.get_io_type())


def _options(options: list[Any]) -> str:
    listed = ", ".join(f'"{option}"' for option in options)
    return "as in KSampler" if options in KSAMPLER else listed


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@EVERY_NODE
def test_help_page_lists_every_input(schema: io.Schema) -> None:
    assert stated(read(schema.node_id)) == expected(schema)


@EVERY_NODE
def test_help_page_starts_with_the_name(schema: io.Schema) -> None:
    assert read(schema.node_id).splitlines()[0] == f"# {schema.display_name}"


def test_every_help_page_belongs_to_a_node() -> None:
    assert {page.stem for page in (ROOT / "web" / "docs").glob("*.md")} == set(SCHEMAS)


@EVERY_NODE
def test_readme_names_every_node_and_links_its_help(schema: io.Schema) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"| [{schema.display_name}](web/docs/{schema.node_id}.md) |" in readme


def test_readme_leaves_the_lists_of_inputs_to_the_help_pages() -> None:
    assert not ITEM.search((ROOT / "README.md").read_text(encoding="utf-8"))


MEASURED = re.compile(r"(?<![\d.])\d+\.\d+ ?[x×]|(?<![\d.])\d+(?:\.\d)? ?dB")
DOCUMENTS = ("docs/speed.md", "docs/quality.md")
FOR_USERS = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md")),
    *(
        page
        for folder, kind in (("web/docs", "md"), ("locales", "json"), ("workflows", "json"))
        for page in (ROOT / folder).rglob(f"*.{kind}")
    ),
    *(ROOT / "nodes").glob("*.py"),
]


def test_a_measured_number_for_users_stands_in_the_documents() -> None:
    texts = {page: page.read_text(encoding="utf-8") for page in FOR_USERS}
    known = {
        number
        for name in DOCUMENTS
        for number in MEASURED.findall((ROOT / name).read_text(encoding="utf-8"))
    }
    unknown = {
        page.relative_to(ROOT).as_posix(): sorted(set(MEASURED.findall(text)) - known)
        for page, text in texts.items()
    }
    assert MEASURED.findall(texts[ROOT / "README.md"])
    assert {page: numbers for page, numbers in unknown.items() if numbers} == {}


@pytest.mark.parametrize("node", ["TokenDownsample", "TokenMerge"])
def test_help_in_every_language_names_the_limits_of_the_code(node: str) -> None:
    least = LEAST_FOR_WINDOWS["cuda"]
    side = 16 * isqrt(least)  # of a picture on Flux, in pixels
    folder = ROOT / "web" / "docs"
    pages = [read(node), *(page.read_text(encoding="utf-8") for page in (folder / node).iterdir())]
    assert len(pages) == 3
    for page in (" ".join(each.split()) for each in pages):
        assert f"{least:,}" in page or f"{least}" in page
        assert f"{side} × {side}" in page
        assert f"Triton {'.'.join(map(str, LEAST_TRITON))}" in page


def test_the_readme_names_the_oldest_versions_of_the_code() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    side = 16 * isqrt(LEAST_FOR_WINDOWS["cuda"])
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    oldest = re.findall(r'^requires-comfyui = ">=(.*)"$', project, re.MULTILINE)[0]
    assert f"below about {side} × {side}" in readme
    assert f"Triton {'.'.join(map(str, LEAST_TRITON))} or later" in readme
    assert f"ComfyUI {oldest} or later" in readme
    (python,) = re.findall(r'^requires-python = ">=(.*)"$', project, re.MULTILINE)
    assert f"with Python {python} or later" in readme
