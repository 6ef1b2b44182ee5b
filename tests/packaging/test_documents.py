"""Help pages say of every input what its schema says."""

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
REDUCING = {name: schema for name, schema in SCHEMAS.items() if name != "TokenReductionCompare"}
"""The one node that is left out has the inputs of KSampler."""
EVERY_NODE = pytest.mark.parametrize("schema", REDUCING.values(), ids=REDUCING)


# A list and no table, since the pane of a help page is narrow.
ITEM = re.compile(r"^- `(?P<name>\w+)` \((?P<default>[^;]*); (?P<accepted>[^)]*)\):", re.MULTILINE)


def stated(pattern: re.Pattern[str], text: str) -> list[tuple[str, str, str]]:
    """(input, default, what it accepts) in the order of the text."""
    found = pattern.finditer(text)
    return [(one["name"], one["default"], " ".join(one["accepted"].split())) for one in found]


def expected(schema: io.Schema) -> list[tuple[str, str, str]]:
    return [(item.id, _default(item), _accepted(item)) for item in schema.inputs[1:]]


def _default(item: io.WidgetInput) -> str:
    return f"{item.default:g}" if isinstance(item, io.Float.Input) else _written(item.default)


def _accepted(item: io.WidgetInput) -> str:
    if isinstance(item, io.Combo.Input):
        return ", ".join(f'"{option}"' for option in item.options)
    if isinstance(item, io.Boolean.Input):
        return "true, false"
    if isinstance(item, io.Float.Input):
        return f"{item.min:g} to {item.max:g}"
    return f"{item.min} to {'2⁶⁴ - 1' if item.max == 2**64 - 1 else item.max}"


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@EVERY_NODE
def test_help_page_lists_every_input(schema: io.Schema) -> None:
    text = (ROOT / "web" / "docs" / f"{schema.node_id}.md").read_text(encoding="utf-8")
    assert stated(ITEM, text) == expected(schema)


def test_help_page_of_the_comparison_names_every_input_and_output() -> None:
    schema = SCHEMAS["TokenReductionCompare"]
    text = (ROOT / "web" / "docs" / f"{schema.node_id}.md").read_text(encoding="utf-8")
    names = [item.id for item in schema.inputs] + [item.display_name for item in schema.outputs]
    assert [name for name in names if f"`{name}`" not in text] == []


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
