"""``python -m devtools test``: lint, format, types, then the tests; pytest's summary comes last."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from . import cache
from .comfyui import ROOT
from .server import link

PROGRAMS = Path(sys.executable).parent

# Linked under this name, since a checkout's folder name need not be one that Python can import.
PACKAGE = "token_merge"
THREADS = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
"""Of torch in the tests. Their models are so small that a second thread only waits; and where
another program uses the same cores, it would wait for most of the time."""
TYPED = ("benchmarks", "devtools", "nodes", "tome_core")


def main(arguments: list[str]) -> int:
    """Run every check, even after one failed; the exit code is the first that is not 0."""
    types = cache.folder() / "types"
    link(types / PACKAGE, ROOT)
    packages = [word for name in TYPED for word in ("--package", f"{PACKAGE}.{name}")]
    mypy_files = [
        "--config-file",
        f"{ROOT / 'pyproject.toml'}",
        "--cache-dir",
        f"{types / 'cache'}",
    ]
    codes = [
        # The folder is the pack's name in ComfyUI, token-merge, which is no module name: N999.
        _run("ruff", "check", "--extend-ignore", "N999", "."),
        _run("ruff", "format", "--check", "."),
        _run("mypy", *mypy_files, *packages, folder=types),
        # The program rather than `python -m pytest`, which would let our folder `nodes` be found
        # where ComfyUI imports its own module of that name.
        _run("pytest", *arguments, variables=THREADS),
    ]
    return next((code for code in codes if code), 0)


def _run(
    program: str, *arguments: str, folder: Path = ROOT, variables: Mapping[str, str] | None = None
) -> int:
    print(f"\n{program} {' '.join(arguments)}", flush=True)
    command = [str(PROGRAMS / program), *arguments]
    environment = {**os.environ, **(variables or {})}
    return subprocess.run(command, cwd=folder, env=environment).returncode
