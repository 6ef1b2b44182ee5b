"""Packages into a virtual environment: by uv, which takes a small part of pip's time, else by pip.

Only the standard library is used here, since nothing else is there before the sandbox is built.
"""

from __future__ import annotations

import ast
import functools
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from . import cache
from .progress import Progress

UV = "uv==0.13.9"

FROM_PIP = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "constraint": "UV_CONSTRAINT",
    "trusted-host": "UV_INSECURE_HOST",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
"""uv does not read pip's settings, which say where a machine gets its packages."""
SECTIONS = (":env:", "install", "global")
"""Of pip's settings; the first one that has a setting counts."""
PIP = ("--no-compile", "--progress-bar", "off")
"""To compile all packages takes two thirds of the time; Python compiles those that it imports."""


class SandboxError(RuntimeError):
    """The sandbox could not be built; the message says why and where the log is."""


def add_uv(folder: Path, python: Path, progress: Progress) -> None:
    """Install uv into the environment in ``folder``; where that fails, pip does all."""
    _run(folder, progress, [python, "-m", "pip", "install", *PIP, UV], os.environ)


def install(folder: Path, python: Path, progress: Progress, *arguments: str | Path) -> None:
    """Install what ``arguments`` of ``pip install`` name into the environment in ``folder``.

    What is done goes to ``progress``, and the whole output to a log. Raises SandboxError.
    """
    uv = python.with_name(f"uv{python.suffix}")
    if uv.is_file():
        command = [uv, "pip", "install", "--python", python, *arguments]
        # The environments' files are links to those there, so it takes no space of its own.
        settings = {"UV_CACHE_DIR": str(cache.folder() / "uv"), **read_settings(python)}
        if _run(folder, progress, command, settings | os.environ):
            return
    if not _run(folder, progress, [python, "-m", "pip", "install", *PIP, *arguments], os.environ):
        log = _find_log(folder)
        last = "\n".join(log.read_text(encoding="utf-8").splitlines()[-15:])
        raise SandboxError(f"pip failed, running the command again repairs it:\n{last}\n({log})")


@functools.cache
def read_settings(python: Path) -> dict[str, str]:
    """pip's settings as environment variables of uv."""
    command = f"{python}", "-m", "pip", "config", "list"
    return translate(subprocess.run(command, capture_output=True, text=True).stdout)


def translate(listed: str) -> dict[str, str]:
    """The output of ``pip config list`` as environment variables of uv.

    Of several releases of a package in several places the highest one is taken, as pip does.
    """
    found = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    lines = [line.split("=", 1) for line in listed.splitlines() if "=" in line]
    for section in SECTIONS:
        for name, value in lines:
            key = FROM_PIP.get(name.removeprefix(f"{section}."))
            if key:
                between = "," if key == "UV_FIND_LINKS" else " "
                found.setdefault(key, between.join(ast.literal_eval(value).split()))
    return found


def describe(line: str) -> str | None:
    """A line of uv's or pip's as a step, such as "collecting rich==15.0.0"; None where it begins
    no step.

    Where packages come from is left out: it may be long.
    """
    words = line.split()
    if line.startswith("Installing collected packages"):
        return f"installing {line.count(',') + 1} packages"
    if len(words) > 1 and words[0] in ("Resolved", "Prepared"):
        return f"{words[0].lower()} {words[1]} packages"
    if len(words) > 1 and words[0] in ("Collecting", "Processing", "Downloading", "Building"):
        return f"{words[0].lower()} {words[1].rsplit('/', 1)[-1]}"
    return None


def _find_log(folder: Path) -> Path:
    return folder / "packages.log"


def _run(
    folder: Path, progress: Progress, command: list[str | Path], environment: Mapping[str, str]
) -> bool:
    """Whether the command did its work."""
    with open(_find_log(folder), "a", encoding="utf-8") as file:
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert process.stdout is not None
        for line in process.stdout:
            file.write(line)
            step = describe(line)
            if step:
                progress.detail(step)
    return process.wait() == 0
