"""``python -m devtools test``: lint, format, types, then the tests; pytest's summary comes last.

Without arguments the tests are the short run. ``--all``: every test. ``--rest``: nothing but the
tests that the short run leaves out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from . import cache
from .comfyui import ROOT
from .progress import Progress
from .server import link

PROGRAMS = Path(sys.executable).parent

# Linked under this name, since a checkout's folder name need not be one that Python can import.
PACKAGE = "token_merge"
THREADS = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
"""torch gets these in the tests. Their models are so small that a second thread only waits; and
where another program uses the same cores, it would wait for most of the time."""
PROCESSES = ("--numprocesses", "2", "--dist", "loadfile", "--no-loadscope-reorder")
"""The tests of all folders are run with these. Which ones stay together, and in which order:
tests/conftest.py says it. With three processes they take longer on two cores, though one of them
mostly waits for a server."""
SIZES = {"--all", "--rest"}
"""These arguments say how many tests run, not which ones."""
TYPED = ("benchmarks", "devtools", "nodes", "tome_core")


def main(arguments: list[str]) -> int:
    """Run every check, even after one failed; the exit code is the first that is not 0."""
    checks = [] if "--rest" in arguments else _check_text()
    codes = [*checks, _run_tests(arguments)]
    return next((code for code in codes if code), 0)


def _check_text() -> list[int]:
    """Lint, format and types of all files; their exit codes."""
    types = cache.folder() / "types"
    link(types / PACKAGE, ROOT)
    packages = [word for name in TYPED for word in ("--package", f"{PACKAGE}.{name}")]
    mypy_files = [
        "--config-file",
        f"{ROOT / 'pyproject.toml'}",
        "--cache-dir",
        f"{types / 'cache'}",
    ]
    return [
        # The folder is the pack's name in ComfyUI, token-merge, which is no module name: N999.
        _run("ruff", "check", "--extend-ignore", "N999", "."),
        _run("ruff", "format", "--check", "."),
        _run("mypy", *mypy_files, *packages, folder=types),
    ]


def _run(program: str, *arguments: str, folder: Path = ROOT) -> int:
    """Run a program that is silent until its end, and show its output then."""
    print(f"\n{program} {' '.join(arguments)}", flush=True)
    command = [str(PROGRAMS / program), *arguments]
    # It does not see the terminal, for which alone it would use colours by itself.
    colours = {"FORCE_COLOR": "1"} if sys.stdout.isatty() and "NO_COLOR" not in os.environ else {}
    with Progress(program):
        result = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **colours},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    print(result.stdout, end="", flush=True)
    return result.returncode


def _run_tests(arguments: list[str]) -> int:
    """In processes of their own, with pytest's output as it comes."""
    if SIZES.issuperset(arguments):
        arguments = [*PROCESSES, *arguments]
    print(f"\npytest {' '.join(arguments)}", flush=True)
    command = [sys.executable, "-m", "devtools.pytest_start", *arguments]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **THREADS}).returncode
