"""A ComfyUI in a tar archive of the user's, for ``matrix --archive``."""

from __future__ import annotations

import re
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from . import comfyui
from .comfyui import ComfyUIError

REQUIREMENTS = "requirements.txt"


@dataclass(frozen=True)
class OwnArchive:
    """sha256: of the file, and the key under which its ComfyUI is kept."""

    file: Path
    sha256: str

    @classmethod
    def read(cls, file: Path) -> OwnArchive:
        return cls(file, comfyui.find_hash(file))

    def folder(self, cache: Path) -> Path:
        """Where ComfyUI lies in the cache once it is complete."""
        return cache / "comfyui" / self.sha256[:12]

    def unpack(self, cache: Path) -> None:
        """Put its ComfyUI there."""
        comfyui.keep(self.file, self.sha256, find_tree(self.file), self.folder(cache))


def find_tree(archive: Path) -> PurePosixPath:
    """The outermost folder in a tar archive that has what ComfyUI starts with."""
    try:
        with tarfile.open(archive) as tar:
            files = {PurePosixPath(member.name) for member in tar if member.isfile()}
    except tarfile.TarError as error:
        raise ComfyUIError(f"{archive} is no tar archive: {error}") from error
    folders = [file.parent for file in files if file.name == "main.py"]
    trees = [folder for folder in folders if folder / REQUIREMENTS in files]
    if not trees:
        raise ComfyUIError(f"{archive} has no folder with main.py and {REQUIREMENTS} of ComfyUI")
    return min(trees, key=lambda folder: len(folder.parts))


def read_version(folder: Path) -> str:
    """The version that a ComfyUI says it has; "unknown" where it says none."""
    place = folder / "comfyui_version.py"
    text = place.read_text(encoding="utf-8") if place.is_file() else ""
    found = re.search('__version__ = "(.+)"', text)
    return found[1] if found else "unknown"


def asks_for_others(folder: Path, newest: Path) -> bool:
    """Whether a ComfyUI asks for other packages than the ``newest`` one, which may be missing."""
    texts = [
        place.read_text(encoding="utf-8") if place.is_file() else None
        for place in (folder / REQUIREMENTS, newest / REQUIREMENTS)
    ]
    return texts[0] != texts[1]
