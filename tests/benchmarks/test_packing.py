"""The folder for a GPU machine runs from where it lies, with nothing of this checkout."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support.packed import run_packed

from benchmarks import packing, stand_ins
from benchmarks.speed import cli


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Without the packages, which would need a package index; this environment has them."""
    monkeypatch.setattr(packing, "_install", lambda *_: None)
    assert cli.main(["--pack", str(tmp_path / "folder")]) == 0
    return tmp_path / "folder"


@pytest.mark.skipif(os.name == "nt", reason="run.sh is for POSIX shells")
def test_the_packed_folder_measures(packed: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    arguments = ["--model", "sd15", "--clips", "wan-480p", "--out", str(results)]
    run_packed(packed, "graph", *arguments)
    assert "ours, stratified" in (results / "tables.txt").read_text(encoding="utf-8")
    assert not list(packed.rglob("__pycache__"))


def test_only_python_files_travel(packed: Path) -> None:
    suffixes = {file.suffix for file in packed.rglob("*") if file.is_file()}
    assert suffixes <= {".py", ".sh", ""}


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RuntimeError, match="not empty"):
        packing.pack(tmp_path, "benchmarks.speed.cli", "")


def test_a_part_for_gpus_says_so_on_a_cpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["graph", "--out", str(tmp_path)]) == 1
    assert "part is graph, which is measured on a GPU" in " ".join(capsys.readouterr().out.split())


def test_a_stand_in_can_be_imported_and_named_but_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stand_ins, "UNUSED", ("package_that_is_missing", "torch"))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    stand_ins.install()
    from package_that_is_missing.part import Something

    class Derived(Something): ...

    with pytest.raises(ModuleNotFoundError, match="stand-in"):
        Derived()
    assert not isinstance(sys.modules["torch"], stand_ins._StandIn)
    del sys.modules["package_that_is_missing"], sys.modules["package_that_is_missing.part"]
