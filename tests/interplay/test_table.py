"""docs/compatibility.md says what the cells were tried for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .cells import Cell, list_cells
from .table import HEADING, write_section

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"
SECTION = re.compile(rf"^{HEADING}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def test_the_document_has_the_table_of_these_cells(
    seen: set[Cell], pytestconfig: pytest.Config
) -> None:
    if pytestconfig.getoption("write_compatibility"):
        assert seen == set(list_cells()), "a cell that was not tried must not be claimed"
        text = DOCUMENT.read_text(encoding="utf-8")
        DOCUMENT.write_text(SECTION.sub(lambda _: write_section() + "\n", text), encoding="utf-8")
    found = SECTION.search(DOCUMENT.read_text(encoding="utf-8"))
    assert found
    assert found[0].rstrip() == write_section().rstrip()
