"""The registry's own tool accepts the pack, and packs what a user needs and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough
ROOT = Path(__file__).parents[2]
SHIPPED_FOLDERS = ("docs", "locales", "nodes", "subgraphs", "tome_core", "workflows", "web")
SHIPPED_FILES = {"__init__.py", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE"}


def test_validates_without_warnings(validation: str) -> None:
    assert "All validation checks passed" in validation
    assert "arning" not in validation


def test_packs_all_that_a_user_needs(packed: frozenset[str]) -> None:
    wanted = {
        path.relative_to(ROOT).as_posix()
        for folder in SHIPPED_FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name.split("/")[0] for name in wanted} == set(SHIPPED_FOLDERS)
    assert wanted | SHIPPED_FILES <= packed


def test_packs_nothing_else(packed: frozenset[str]) -> None:
    others = {name for name in packed - SHIPPED_FILES if name.split("/")[0] not in SHIPPED_FOLDERS}
    assert not others
    assert not {name for name in packed if name.endswith(".pyc") or "/." in name}
