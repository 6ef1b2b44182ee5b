"""A set-up that stops half-way is repaired by the next, and a finished one is left alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from devtools import cache, packages, sandbox
from devtools.progress import Progress


@pytest.fixture
def own_comfyui(tmp_path, monkeypatch) -> Path:
    """An empty cache, and a ComfyUI of the user's own, so that nothing has to be fetched."""
    folder = tmp_path / "ComfyUI"
    (folder / "comfy").mkdir(parents=True)
    (folder / "main.py").touch()
    names = ("torch", "torchaudio", "comfyui-workflow-templates==0.11.27", "einops")
    (folder / "requirements.txt").write_text("\n".join(names))
    monkeypatch.setenv("COMFYUI_PATH", str(folder))
    monkeypatch.setenv("TOKEN_MERGE_CACHE", str(tmp_path / "cache"))
    return folder


class Installer:
    """Takes the place of everything that would use the network or take minutes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.created: list[Path] = []
        self.stops_at: BaseException | None = None
        self.probe_code = 0
        monkeypatch.setattr(sandbox.venv, "create", self._create)
        monkeypatch.setattr(packages, "_run", self._install)
        monkeypatch.setattr(sandbox, "_run", self._run)

    def _create(self, folder: Path, with_pip: bool) -> None:
        self.created.append(folder)
        python = sandbox.find_python(folder)
        python.parent.mkdir(parents=True)
        python.touch()

    def _install(self, folder: Path, progress: Progress, command: list, environment: dict) -> bool:
        (folder / "half-installed").touch()
        if self.stops_at:
            raise self.stops_at
        (folder / "half-installed").unlink()
        return True

    def _run(self, made: sandbox.Sandbox, code: str) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], self.probe_code, "12.0", "no module")


@pytest.fixture
def installer(monkeypatch) -> Installer:
    return Installer(monkeypatch)


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), sandbox.SandboxError("no network")])
def test_a_set_up_that_stopped_is_done_again_from_scratch(stop, own_comfyui, installer):
    installer.stops_at = stop
    with pytest.raises(type(stop)):
        sandbox.ready()
    installer.stops_at = None
    ready = sandbox.ready()
    folder = ready.python.parent.parent
    assert installer.created == [folder, folder]
    assert not (folder / "half-installed").exists()
    assert sandbox.is_complete(folder)


def test_a_finished_set_up_is_used_again(own_comfyui, installer):
    assert sandbox.ready() == sandbox.ready()
    assert len(installer.created) == 1


def test_an_environment_whose_interpreter_is_gone_is_built_again(own_comfyui, installer):
    sandbox.ready().python.unlink()
    assert sandbox.ready().python.exists()
    assert len(installer.created) == 2


def test_an_environment_that_imports_nothing_is_not_called_ready(own_comfyui, installer):
    installer.probe_code = 1
    with pytest.raises(sandbox.SandboxError, match="does not work:\nno module"):
        sandbox.ready()
    installer.probe_code = 0
    sandbox.ready()
    assert len(installer.created) == 2


def test_other_requirements_get_an_environment_of_their_own(own_comfyui, installer):
    first = sandbox.ready().python
    (own_comfyui / "requirements.txt").write_text("torch\nsomething-new\n")
    assert sandbox.ready().python != first
    assert first.exists()


def test_torchaudio_and_comfyuis_templates_are_not_asked_of_pip(own_comfyui, installer):
    folder = sandbox.ready().python.parent.parent
    assert (folder / "comfyui-requirements.txt").read_text().split() == ["torch", "einops"]


def test_processes_of_the_sandbox_leave_the_users_folders_alone(own_comfyui, installer, tmp_path):
    environment = sandbox.ready().environment()
    inside = str(tmp_path / "cache")
    assert all(environment[name].startswith(inside) for name in ("HOME", "PYTHONPYCACHEPREFIX"))
    assert environment["COMFYUI_PATH"] == str(own_comfyui)


def test_byte_code_is_kept_for_the_next_process(own_comfyui, installer, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert "PYTHONDONTWRITEBYTECODE" not in sandbox.ready().environment()


def test_a_second_process_waits_for_the_lock(tmp_path):
    lock = tmp_path / "set-up.lock"
    code = "import sys; from pathlib import Path; from devtools import cache\n"
    code += "with cache.locked(Path(sys.argv[1])): print('mine')"
    command = [sys.executable, "-u", "-c", code, str(lock)]
    root = Path(__file__).parents[2]
    with cache.locked(lock):
        second = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)
        assert second.stdout is not None
        assert second.stdout.readline().startswith("Waiting for another set-up")
    assert second.communicate(timeout=30)[0].endswith("mine\n")


def test_a_set_up_says_its_stages_once_each(own_comfyui, installer, capsys):
    sandbox.ready()
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert lines[0].startswith("Setting up the sandbox")
    assert lines[-1].startswith("The sandbox is ready")
    assert len(lines) == len(set(lines)) < 10


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13"])
def test_every_python_gets_one_version_of_each_package(python):
    lines = sandbox.REQUIREMENTS.read_text().splitlines()
    wanted = [Requirement(line) for line in lines if line and not line.startswith("#")]
    place = {"python_version": python, "python_full_version": f"{python}.0"}
    chosen = [one.name for one in wanted if one.marker is None or one.marker.evaluate(place)]
    assert sorted(chosen) == sorted({one.name for one in wanted})
