"""``python -m devtools matrix``: the tests on each ComfyUI that is supported, and what each lacks.

Every version runs with the packages of the sandbox, which are those of the newest ComfyUI.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from . import cache, comfyui
from .check import THREADS
from .comfyui import ROOT, Archive
from .junit import Report, read_report
from .options.matrix import parse
from .progress import Progress
from .sandbox import SandboxError

PREPARE = """
import sys
from pathlib import Path
from devtools import sandbox
python = sandbox.ready().python
Path(sys.argv[1]).write_text(f"{python}\\n{sys.version.split()[0]}", encoding="utf-8")
"""
"""Another Python runs this: it makes its sandbox, and says where that is."""


@dataclass(frozen=True)
class Python:
    """An interpreter in which everything is installed, and its version."""

    program: Path
    version: str


@dataclass(frozen=True)
class Cell:
    """One run of the tests. code: pytest's exit code."""

    comfyui: str
    python: str
    code: int
    report: Report


def main(arguments: list[str]) -> int:
    """Run the tests everywhere, even after some failed; the exit code is 1 where any did."""
    options = parse(arguments)
    try:
        pythons = [_prepare(program) for program in options.python] or [
            Python(Path(sys.executable), platform.python_version())
        ]
        folders = {archive: _fetch(archive) for archive in options.archives}
    except (SandboxError, comfyui.ComfyUIError) as error:
        print(f"devtools: {error}", file=sys.stderr)
        return 1
    cells = [
        _run_tests(archive.comfyui, folder, python, options.tests)
        for python in pythons
        for archive, folder in folders.items()
    ]
    console = Console()
    for cell in cells:
        _print_left_out(console, cell)
    console.print(tabulate(cells))
    return int(any(cell.code for cell in cells))


def _prepare(program: str) -> Python:
    """The sandbox of another Python, built first where it is missing."""
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch) / "answer"
        if subprocess.run([program, "-c", PREPARE, answer], cwd=ROOT).returncode:
            raise SandboxError(f"{program} could not make its sandbox")
        place, version = answer.read_text(encoding="utf-8").splitlines()
    return Python(Path(place), version)


def _fetch(archive: Archive) -> Path:
    folder = archive.folder(cache.folder())
    if comfyui.is_comfyui(folder):
        return folder
    with cache.locked(cache.folder() / "set-up.lock"), Progress("Looking at what is there") as bar:
        return comfyui.fetch(Path(sys.executable), cache.folder(), bar, archive)


def _run_tests(version: str, folder: Path, python: Python, tests: list[str]) -> Cell:
    """In a process of their own, with pytest's output as it comes."""
    print(f"\nComfyUI {version}, Python {python.version}: pytest {' '.join(tests)}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "report.xml"
        options = ["--quiet", "--tb=short", f"--junit-xml={place}"]
        command = [str(python.program), "-m", "devtools.pytest_start", *options, *tests]
        environment = {**os.environ, **THREADS, "COMFYUI_PATH": str(folder)}
        code = subprocess.run(command, cwd=ROOT, env=environment).returncode
        return Cell(version, python.version, code, read_report(place))


def _print_left_out(console: Console, cell: Cell) -> None:
    if cell.report.left_out:
        console.print(f"\nLeft out on ComfyUI {cell.comfyui}, Python {cell.python}:")
    for reason, count in sorted(cell.report.left_out.items()):
        console.print(f"{count:>6}  {reason}", soft_wrap=True, highlight=False)


def tabulate(cells: Iterable[Cell]) -> Table:
    """A row for each run of the tests."""
    table = Table()
    table.add_column("ComfyUI")
    table.add_column("Python")
    for name in ("passed", "failed", "left out", "seconds"):
        table.add_column(name, justify="right")
    table.add_column("result")
    for cell in cells:
        report = cell.report
        counts = (report.passed, report.failed, report.left_out.total(), round(report.seconds))
        result = f"failed ({cell.code})" if cell.code else "passed"
        table.add_row(cell.comfyui, cell.python, *map(str, counts), result)
    return table
