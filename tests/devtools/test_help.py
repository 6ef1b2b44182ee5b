"""Help and mistakes are answered with nothing built, and by the standard library alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from devtools.__main__ import COMMANDS

ROOT = Path(__file__).parents[2]
ACTIONS = {"bench": ["unet"], "quality": ["measure", "times"]}
WORDS = [
    *([name] for name in COMMANDS),
    *([name, action] for name, actions in ACTIONS.items() for action in actions),
]


def run(cache: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """``python -m devtools`` as on a machine that has nothing but Python."""
    environment = {**os.environ, "TOKEN_MERGE_CACHE": str(cache)}
    del environment["COMFYUI_PATH"]
    # -S leaves out everything that is installed: torch, rich, requests.
    command = [sys.executable, "-S", "-m", "devtools", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_help_builds_nothing(words, tmp_path):
    result = run(tmp_path / "cache", *words, "--help")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("usage: python -m devtools " + words[0])
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_of_all_commands_names_each(option, tmp_path):
    result = run(tmp_path / "cache", option)
    assert result.returncode == 0
    assert all(name in result.stdout for name in COMMANDS)
    assert not (tmp_path / "cache").exists()


def test_help_of_the_tests_says_what_runs(tmp_path):
    said = run(tmp_path / "cache", "test", "--help").stdout
    assert all(name in said for name in ("ruff", "mypy", "pytest", "--all", "--rest"))


@pytest.mark.parametrize(
    "words",
    [
        ["demo", "--steps", "1"],
        ["serve", "--prot", "1"],
        ["matrix", "--versions", "0.1.0"],
        ["matrix", "--python", "0.1"],
        ["bench", "u-net"],
        ["quality"],
    ],
)
def test_a_mistake_is_told_before_anything_is_built(words, tmp_path):
    result = run(tmp_path / "cache", *words)
    assert result.returncode == 2
    assert "error: " in result.stderr
    assert not (tmp_path / "cache").exists()


def test_arguments_of_the_tests_reach_pytest_as_they_are():
    from devtools.options import test

    arguments = ["-k", "merge", "tests/nodes", "-x", "--", "--co"]
    assert test.parse(arguments) == arguments
