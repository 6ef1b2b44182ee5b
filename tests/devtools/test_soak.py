"""The parts of ``python -m devtools soak``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from devtools import soak
from devtools.options.soak import GROUPS, PARTS, parse

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_each_part_has_tests(part):
    assert list(ROOT.glob(part.files))


def test_every_fuzz_test_and_long_run_is_of_one_part():
    found = [path for part in PARTS.values() for path in ROOT.glob(part.files)]
    of_tests = [path for path in (ROOT / "tests").rglob("test_*.py") if _has_long_form(path)]
    assert sorted(found) == sorted(of_tests)


def _has_long_form(path: Path) -> bool:
    return path.parent.name != "devtools" and "import SOAK" in path.read_text(encoding="utf-8")


def test_without_parts_all_are_run():
    assert parse([]).parts == [*PARTS]


def test_a_group_stands_for_its_parts():
    assert parse(["queue", "fuzz", "core"]).parts == ["queue", *GROUPS["fuzz"]]


@pytest.mark.parametrize("words", [["cor"], ["--cases", "0"], ["core", "--seed", "x"]])
def test_a_mistake_is_told(words, capsys):
    with pytest.raises(SystemExit):
        parse(words)
    assert "error: " in capsys.readouterr().err


def test_a_part_that_fails_does_not_stop_the_others(monkeypatch, capsys):
    ran = []

    class Result:
        returncode = 3

    def run(command, **options):
        ran.append(command)
        return Result

    monkeypatch.setattr(soak.subprocess, "run", run)
    assert soak.main(["core", "reload", "--cases", "7", "--seed", "5"]) == 3
    assert len(ran) == 2
    for command in ran:
        assert command[0] == sys.executable
        assert {"--all", "--cases=7", "--hypothesis-seed=5"} <= set(command)
    assert capsys.readouterr().out.count("seed 5") == 2
