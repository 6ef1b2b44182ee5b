"""What ``python -m devtools test`` and ``.ci/run`` run, in which order, and what comes of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from devtools import check
from devtools.comfyui import ROOT

Run = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def run(monkeypatch, tmp_path) -> Run:
    """``run(*arguments, fails=name)``: the command's exit code, and what it started instead."""
    monkeypatch.setenv("TOKEN_MERGE_CACHE", str(tmp_path))

    def run_command(*arguments: str, fails: str = "") -> tuple[int, list[str]]:
        started = []

        def pretend(command, **options):
            words = [Path(command[0]).name, *map(str, command[1:])]
            started.append(" ".join(words if "devtools.pytest_start" not in words else words[2:]))
            code = 3 if fails and started[-1].startswith(fails) else 0
            return subprocess.CompletedProcess(command, code, "", "")

        monkeypatch.setattr(check.subprocess, "run", pretend)
        return check.main([*arguments]), started

    return run_command


IN_PROCESSES = " ".join(check.PROCESSES)


@pytest.mark.parametrize(
    ("arguments", "of_pytest"),
    [
        ([], IN_PROCESSES),
        (["--all"], f"{IN_PROCESSES} --all"),
        (["tests/nodes", "-x"], "tests/nodes -x"),
        (["tests/nodes", "--all"], "tests/nodes --all"),
    ],
    ids=" ".join,
)
def test_text_is_checked_before_the_tests(arguments, of_pytest, run):
    code, (*text, tests) = run(*arguments)
    assert code == 0
    assert [" ".join(each.split()[:2]) for each in text[:2]] == ["ruff check", "ruff format"]
    assert text[2].startswith("mypy ")
    assert tests == f"devtools.pytest_start {of_pytest}".strip()


def test_the_rest_is_tests_alone(run):
    assert run("--rest") == (0, [f"devtools.pytest_start {IN_PROCESSES} --rest"])


@pytest.mark.parametrize("fails", ["ruff check", "ruff format", "mypy", "devtools.pytest_start"])
def test_a_check_that_fails_stops_no_other(fails, run):
    code, started = run(fails=fails)
    assert code == 3
    assert len(started) == 4


PYTHON = """#!/bin/sh
echo "$*"
case "$*" in *--rest) exit $REST;; *) exit $SHORT;; esac
"""


@pytest.mark.skipif(os.name == "nt", reason=".ci/run is for POSIX shells")
@pytest.mark.parametrize(
    ("short", "rest", "code", "lines"), [(0, 0, 0, 2), (1, 0, 1, 1), (0, 1, 1, 2)]
)
def test_the_rest_runs_only_after_a_short_run_that_passed(short, rest, code, lines, tmp_path):
    for name, text in {"python3": PYTHON, "id": "#!/bin/sh\necho 1000"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "SHORT": f"{short}",
        "REST": f"{rest}",
    }
    result = subprocess.run(
        [ROOT / ".ci" / "run"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == code
    assert result.stdout.splitlines() == ["-m devtools test", "-m devtools test --rest"][:lines]
