"""What is noted of the machine and of the tree that numbers were measured with."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.machine import find_commit


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit."""
    monkeypatch.delenv("TOKEN_MERGE_COMMIT", raising=False)
    for name in ("README.md", "nodes/a.py", "benchmarks/quality/results/unet/results.json"):
        write(tmp_path / name, "before")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "--message", "one")
    return tmp_path


def git(tree: Path, *arguments: str) -> str:
    result = subprocess.run(["git", *arguments], cwd=tree, check=True, capture_output=True)
    return result.stdout.decode().strip()


def write(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")


def test_a_commit_is_marked_where_what_is_measured_was_changed_since(tree: Path) -> None:
    commit = git(tree, "rev-parse", "HEAD")[:12]
    assert find_commit(tree) == commit
    write(tree / "nodes/a.py", "after")
    assert find_commit(tree) == f"{commit}+"
    git(tree, "add", ".")
    assert find_commit(tree) == f"{commit}+"


@pytest.mark.parametrize(
    "name", ["README.md", "nodes/new.py", "benchmarks/quality/results/unet/results.json"]
)
def test_other_files_and_results_mark_no_commit(name: str, tree: Path) -> None:
    write(tree / name, "after")
    assert find_commit(tree) == git(tree, "rev-parse", "HEAD")[:12]


def test_a_folder_that_is_no_repository_has_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOKEN_MERGE_COMMIT", raising=False)
    assert find_commit(tmp_path) is None
