"""The registry's own tool accepts the pack, and packs what a user needs and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHIPPED_FOLDERS = ("nodes", "tome_core", "workflows", "web")
SHIPPED_FILES = {"__init__.py", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE"}


def run(folder: Path, home: Path, *command: str) -> str:
    """Output of a command that must succeed, without network, prompts or the user's settings."""
    environment = {
        **os.environ,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "DO_NOT_TRACK": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    result = subprocess.run(
        command, cwd=folder, env=environment, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout
    return result.stdout


def comfy(folder: Path, home: Path, *arguments: str) -> str:
    options = ("--skip-prompt", "--no-enable-telemetry")
    return run(folder, home, sys.executable, "-m", "comfy_cli", *options, "node", *arguments)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    """The tree as a first commit would hold it, so that packing leaves no file in the real one."""
    folder = tmp_path_factory.mktemp("copy") / "token-merge"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", "node.zip"))
    if shutil.which("git"):  # comfy-cli packs the files that git tracks; without git, all
        run(folder, home, "git", "init", "--quiet")
        run(folder, home, "git", "add", "--all")
    return folder


@pytest.fixture(scope="module")
def packed(copy: Path, home: Path) -> set[str]:
    comfy(copy, home, "pack")
    with zipfile.ZipFile(copy / "node.zip") as archive:
        return set(archive.namelist())


def test_validates_without_warnings(copy: Path, home: Path) -> None:
    output = comfy(copy, home, "validate")
    assert "All validation checks passed" in output
    assert "arning" not in output


def test_packs_all_that_a_user_needs(packed: set[str]) -> None:
    wanted = {
        path.relative_to(ROOT).as_posix()
        for folder in SHIPPED_FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name.split("/")[0] for name in wanted} == set(SHIPPED_FOLDERS)
    assert wanted | SHIPPED_FILES <= packed


def test_packs_nothing_else(packed: set[str]) -> None:
    others = {name for name in packed - SHIPPED_FILES if name.split("/")[0] not in SHIPPED_FOLDERS}
    assert not others
    assert not {name for name in packed if name.endswith(".pyc") or "/." in name}
