"""What comfy-cli packs of this tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def copy(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    """The tree as a first commit would hold it, so that packing leaves no file in the real one."""
    folder = tmp_path_factory.mktemp("copy") / "token-merge"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", "node.zip"))
    if shutil.which("git"):  # comfy-cli packs the files that git tracks; without git, all
        run(folder, home, "git", "init", "--quiet")
        run(folder, home, "git", "add", "--all")
    return folder


@pytest.fixture(scope="session")
def validation(copy: Path, home: Path) -> str:
    """What comfy-cli says of the tree."""
    return comfy(copy, home, "validate")


@pytest.fixture(scope="session")
def packed(copy: Path, home: Path) -> frozenset[str]:
    """Paths of the files in the archive."""
    comfy(copy, home, "pack")
    with zipfile.ZipFile(copy / "node.zip") as archive:
        return frozenset(archive.namelist())
