"""The cache folder, and a lock so that two commands do not build the same thing at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .progress import Progress

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


def folder() -> Path:
    """``TOKEN_MERGE_CACHE``, or ``token-merge`` in the operating system's user cache."""
    chosen = os.environ.get("TOKEN_MERGE_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        parent = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        parent = Path.home() / "Library" / "Caches"
    else:
        parent = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return parent / "token-merge"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path``; says so where another process makes it wait.

    The operating system frees the lock when the process ends, however it ends, so an interrupted
    set-up never leaves one behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+b") as file:
        if not _try_lock(file.fileno()):
            with Progress(f"Waiting for another set-up that holds {path}"):
                _lock(file.fileno())
        yield


if sys.platform == "win32":

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _lock(descriptor: int) -> None:
        # LK_LOCK itself gives up after ten tries, one a second.
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
            except OSError:
                continue
            return

else:

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
