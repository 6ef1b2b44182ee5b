"""The tests on several versions of ComfyUI: small ones, on folders that look like one."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from devtools import comfyui, matrix
from devtools.options.matrix import parse

TESTS = """
import os
from pathlib import Path
import pytest

VERSION = Path(os.environ["COMFYUI_PATH"]).name

def test_that_passes():
    pass

@pytest.mark.skipif(VERSION == "old", reason=f"ComfyUI {VERSION} lacks Krea 2")
def test_of_a_model():
    pass

def test_that_fails_on_one():
    assert VERSION != "broken"

@pytest.fixture
def something(request):
    assert VERSION != "broken"

def test_that_cannot_begin(something):
    pass
"""


@pytest.fixture
def tests(tmp_path) -> str:
    place = tmp_path / "test_something.py"
    place.write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return str(place)


@pytest.fixture
def versions(tmp_path, monkeypatch) -> None:
    """Two versions that were fetched before."""
    archives = [comfyui.Archive(name, "9", name) for name in ("old", "broken")]
    monkeypatch.setenv("TOKEN_MERGE_CACHE", str(tmp_path))
    monkeypatch.setattr("devtools.options.matrix.ARCHIVES", archives)
    for name in ("old", "broken"):
        folder = tmp_path / "comfyui" / name
        (folder / "comfy").mkdir(parents=True)
        (folder / "main.py").touch()
        (folder / "requirements.txt").touch()


def test_each_version_has_its_row_and_says_what_it_lacks(tests, versions, capfd, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    assert matrix.main(["--", tests]) == 1
    lines = [" ".join(line.split()) for line in capfd.readouterr().out.splitlines()]
    assert "1 ComfyUI old lacks Krea 2" in lines
    python = sys.version.split()[0]
    rows = [line.split(" │ ") for line in lines if line.startswith("│ ")]
    counts = [[each.strip("│ ") for each in row] for row in rows]
    assert [row[:5] + row[6:] for row in counts] == [
        ["old", python, "3", "0", "1", "passed"],
        ["broken", python, "2", "2", "0", "failed (1)"],
    ]


@pytest.fixture
def pytest_that(monkeypatch) -> Callable[..., None]:
    """``pytest_that(code, cases)``: takes pytest's place, as it takes a second to start."""
    run = subprocess.run

    def install(code: int, cases: str | None) -> None:
        def pretend(command, **options):
            if "devtools.pytest_start" not in command:
                return run(command, **options)
            (report,) = (word for word in map(str, command) if word.startswith("--junit-xml="))
            if cases is not None:
                text = f"<testsuites><testsuite time='2'>{cases}</testsuite></testsuites>"
                Path(report.partition("=")[2]).write_text(text)
            return subprocess.CompletedProcess(command, code)

        monkeypatch.setattr(matrix.subprocess, "run", pretend)

    return install


def test_versions_that_all_pass_give_exit_code_0(versions, pytest_that):
    pytest_that(0, "<testcase/>")
    assert matrix.main([]) == 0


def test_a_pytest_that_wrote_no_report_is_a_failure(versions, pytest_that, capsys):
    pytest_that(4, None)
    assert matrix.main(["--versions", "old"]) == 1
    assert "failed (4)" in capsys.readouterr().out


def test_another_python_brings_the_packages_of_its_own_sandbox(
    versions, pytest_that, monkeypatch, capsys
):
    pytest_that(0, "<testcase/>")
    answer = "Path(sys.argv[1]).write_text('/its/python\\n3.99.0')"
    monkeypatch.setattr(matrix, "PREPARE", f"import sys; from pathlib import Path; {answer}")
    assert matrix.main(["--versions", "old", "--python", sys.executable]) == 0
    assert "ComfyUI old, Python 3.99.0" in capsys.readouterr().out


def test_a_python_without_a_sandbox_ends_the_command(versions, pytest_that, monkeypatch, capsys):
    pytest_that(0, "<testcase/>")
    monkeypatch.setattr(matrix, "PREPARE", "raise SystemExit(1)")
    assert matrix.main(["--python", sys.executable]) == 1
    assert "could not make its sandbox" in capsys.readouterr().err


def test_without_options_every_version_is_tested_by_every_test_of_each_folder():
    options = parse([])
    assert options.archives == list(comfyui.ARCHIVES)
    *folders, size = options.tests
    assert folders[:3] == ["tests/core", "tests/nodes", "tests/transformers"]
    assert all((comfyui.ROOT / name).is_dir() for name in folders)
    assert size == "--all"


def test_a_python_is_found_by_its_version():
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    (program,) = parse(["--python", version]).python
    assert Path(program).name == f"python{version}"


@pytest.fixture
def own_archive(tmp_path, versions, monkeypatch) -> Callable[[str], Path]:
    """``own_archive(requirements)``: a file with a ComfyUI 9.9.9 that asks for these packages. The
    newest version asks for none.
    """
    newest = comfyui.Archive("old", "9", "old")
    monkeypatch.setattr(comfyui, "PINNED", newest)

    def pack(requirements: str) -> Path:
        texts = {
            "main.py": "",
            "requirements.txt": requirements,
            "comfy/sd.py": "",
            "comfyui_version.py": '__version__ = "9.9.9"',
            "custom_nodes/another/main.py": "",
            "custom_nodes/another/requirements.txt": "",
        }
        place = tmp_path / "comfyui.tar.xz"
        with tarfile.open(place, "w:xz") as tar:
            for name, text in texts.items():
                member = tarfile.TarInfo(f"some/folder/{name}")
                member.size = len(text)
                tar.addfile(member, io.BytesIO(text.encode()))
        return place

    return pack


def test_an_archive_of_ones_own_is_tested_alone_and_kept_by_its_hash(
    own_archive, pytest_that, tmp_path, capsys
):
    pytest_that(0, "<testcase/>")
    place = own_archive("")
    sha256 = hashlib.sha256(place.read_bytes()).hexdigest()
    for _ in range(2):
        assert matrix.main(["--archive", str(place)]) == 0
        said = capsys.readouterr().out
        assert f"comfyui.tar.xz: ComfyUI 9.9.9, SHA-256 {sha256}" in said
        assert f"ComfyUI 9.9.9, Python {sys.version.split()[0]}" in said
        assert "ComfyUI old" not in said
    assert (tmp_path / "comfyui" / sha256[:12] / "main.py").is_file()


@pytest.mark.parametrize("python", [[], ["--python", sys.executable]], ids=["this", "another"])
def test_an_archive_that_asks_for_other_packages_gets_them_and_no_others(
    own_archive, pytest_that, monkeypatch, capsys, python
):
    pytest_that(0, "<testcase/>")
    place = own_archive("comfy-kitchen==0.2.99")
    says = "text = (Path(os.environ['COMFYUI_PATH']) / 'requirements.txt').read_text()"
    answer = "Path(sys.argv[1]).write_text(f'/its/python\\n{text}')"
    imports = "import os, sys; from pathlib import Path"
    monkeypatch.setattr(matrix, "PREPARE", f"{imports}; {says}; {answer}")
    assert matrix.main(["--archive", str(place), *python]) == 0
    assert "ComfyUI 9.9.9, Python comfy-kitchen==0.2.99" in capsys.readouterr().out


def test_a_file_that_is_no_archive_or_holds_no_comfyui_is_refused(own_archive, tmp_path, capsys):
    place = tmp_path / "text.tar"
    place.write_text("no archive")
    assert matrix.main(["--archive", str(place)]) == 1
    assert "text.tar is no tar archive" in capsys.readouterr().err
    with tarfile.open(place, "w") as tar:
        tar.add(__file__, "main.py")
    assert matrix.main(["--archive", str(place)]) == 1
    assert "has no folder with main.py and requirements.txt of ComfyUI" in capsys.readouterr().err


def test_a_missing_archive_is_a_mistake_of_the_command_line(tmp_path, capsys):
    with pytest.raises(SystemExit):
        parse(["--archive", str(tmp_path / "missing.tar.xz")])
    assert "found no file" in capsys.readouterr().err
