"""Help pages and README say of every input what its schema says."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
import token_merge
from comfy_api.latest import io

ROOT = Path(__file__).parents[2]
NODES = asyncio.run(asyncio.run(token_merge.comfy_entrypoint()).get_node_list())
SCHEMAS = {node.GET_SCHEMA().node_id: node.GET_SCHEMA() for node in NODES}
PAGES = [ROOT / "README.md", *sorted((ROOT / "web" / "docs").glob("*.md"))]
EVERY_NODE = pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)


def input_rows(text: str) -> dict[str, tuple[str, str]]:
    """First table after ``text``'s start: default and range by input."""
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \|", text, re.MULTILINE)
    return {name: (default.strip(), accepted.strip()) for name, default, accepted in rows}


def expected_rows(schema: io.Schema) -> dict[str, tuple[str, str]]:
    return {item.id: (_default(item), _accepted(item)) for item in schema.inputs[1:]}


def _default(item: io.WidgetInput) -> str:
    return f"{item.default:g}" if isinstance(item, io.Float.Input) else _written(item.default)


def _accepted(item: io.WidgetInput) -> str:
    if isinstance(item, io.Combo.Input):
        return ", ".join(item.options)
    if isinstance(item, io.Boolean.Input):
        return "true, false"
    most = "2⁶⁴ - 1" if item.max == 2**64 - 1 else f"{item.max:g}"
    return f"{item.min:g} to {most}"


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@EVERY_NODE
def test_help_page_lists_every_input(schema: io.Schema) -> None:
    text = (ROOT / "web" / "docs" / f"{schema.node_id}.md").read_text(encoding="utf-8")
    assert list(input_rows(text).items()) == list(expected_rows(schema).items())


@EVERY_NODE
def test_readme_lists_every_input(schema: io.Schema) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.split(f"\n### {schema.display_name}\n")[1].split("\n### ")[0].split("\n## ")[0]
    assert list(input_rows(section).items()) == list(expected_rows(schema).items())


def test_every_help_page_belongs_to_a_node() -> None:
    assert {page.stem for page in (ROOT / "web" / "docs").glob("*.md")} == set(SCHEMAS)


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", *sorted((ROOT / "web" / "docs").glob("*.md"))],
    ids=lambda p: p.stem,
)
def test_links_to_files_of_the_tree_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
