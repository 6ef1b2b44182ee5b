"""The packages of the sandbox, from where the machine's pip has them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from devtools import packages
from devtools.progress import Progress


def test_lines_of_installers_become_short_steps():
    steps = {
        "Collecting rich==15.0.0 (from -r /a/list.txt (line 13))": "collecting rich==15.0.0",
        "Processing /opt/wheels/torch-2.13.0-cp311.whl": "processing torch-2.13.0-cp311.whl",
        "  Downloading torch-2.13.0-cp311.whl (800 MB)": "downloading torch-2.13.0-cp311.whl",
        "Installing collected packages: mpmath, torch": "installing 2 packages",
        "Resolved 137 packages in 2.31s": "resolved 137 packages",
        "Requirement already satisfied: pip in ./lib": None,
        "": None,
    }
    assert {line: packages.describe(line) for line in steps} == steps


def test_uv_gets_the_settings_that_count_for_pip(tmp_path, monkeypatch):
    """The user's own pip lists them, from its file and from the environment."""
    settings = tmp_path / "pip.conf"
    settings.write_text(
        "[global]\nindex-url = https://a/simple\nfind-links =\n    /b\n    /c\ncert = /d.pem\n"
        "[install]\nconstraint = /e.txt\n[freeze]\nconstraint = /f.txt\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    monkeypatch.setenv("PIP_INDEX_URL", "https://g/simple")
    for name in ("PIP_FIND_LINKS", "PIP_CERT", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    found = packages.read_settings(Path(sys.executable))
    assert found["UV_DEFAULT_INDEX"] == "https://g/simple"
    assert found["UV_FIND_LINKS"] == "/b,/c"
    assert found["UV_CONSTRAINT"] == "/e.txt"
    assert found["SSL_CERT_FILE"] == "/d.pem"


@pytest.mark.parametrize("has_uv", [True, False])
def test_pip_installs_where_uv_is_not_there_or_fails(has_uv, tmp_path):
    python, uv = tmp_path / "python", tmp_path / "uv"
    for program, code in ((python, 0), (uv, 1)):
        program.write_text(f'#!/bin/sh\necho "$0 $*"\nexit {code}\n')
        program.chmod(0o755)
    if not has_uv:
        uv.unlink()
    packages.install(tmp_path, python, Progress(""), "rich")
    asked = (tmp_path / "packages.log").read_text().splitlines()
    assert len(asked) == 1 + has_uv
    assert asked[-1].startswith(f"{python} -m pip install") and asked[-1].endswith("rich")


def test_what_pip_said_last_stands_in_the_error(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no such package\nexit 1\n")
    python.chmod(0o755)
    with pytest.raises(packages.SandboxError, match=r"(?s)pip failed.*no such package"):
        packages.install(tmp_path, python, Progress(""), "rich")
