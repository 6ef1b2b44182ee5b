"""``python -m devtools matrix``: the tests on each ComfyUI that is supported, and what each lacks.

Every version runs with the packages of the sandbox, which are those of the newest ComfyUI. An
archive of the user's whose ComfyUI asks for others gets an environment of its own.
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
from .own_archive import OwnArchive, asks_for_others, read_version
from .packages import SandboxError
from .progress import Progress

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
class Tree:
    """A ComfyUI in the cache. has_own_packages: it asks for others than the sandbox has."""

    version: str
    folder: Path
    has_own_packages: bool


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
        trees = [_fetch(archive) for archive in options.archives]
        runs = _prepare_all(options.python or [None], trees)
    except (SandboxError, comfyui.ComfyUIError) as error:
        print(f"devtools: {error}", file=sys.stderr)
        return 1
    cells = [_run_tests(tree, python, options.tests) for tree, python in runs]
    console = Console()
    for cell in cells:
        _print_left_out(console, cell)
    console.print(tabulate(cells))
    return int(any(cell.code for cell in cells))


def _prepare_all(programs: list[str | None], trees: list[Tree]) -> list[tuple[Tree, Python]]:
    """Each tree with each Python; None is the one that runs this."""
    prepared: dict[tuple[str | None, Path | None], Python] = {}
    runs = []
    for program in programs:
        for tree in trees:
            wanted = program, tree.folder if tree.has_own_packages else None
            prepared[wanted] = prepared.get(wanted) or _prepare(*wanted)
            runs.append((tree, prepared[wanted]))
    return runs


def _prepare(program: str | None, folder: Path | None) -> Python:
    """A Python with all packages, its sandbox built first where it is missing.

    folder: a ComfyUI whose packages it has to have, None for those of the newest version.
    """
    if program is None and folder is None:
        return Python(Path(sys.executable), platform.python_version())
    environment = {**os.environ, **({"COMFYUI_PATH": str(folder)} if folder else {})}
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch) / "answer"
        command = [program or sys.executable, "-c", PREPARE, str(answer)]
        if subprocess.run(command, cwd=ROOT, env=environment).returncode:
            raise SandboxError(f"{command[0]} could not make its sandbox")
        place, version = answer.read_text(encoding="utf-8").splitlines()
    return Python(Path(place), version)


def _fetch(archive: Archive | OwnArchive) -> Tree:
    folder = archive.folder(cache.folder())
    if not comfyui.is_comfyui(folder):
        lock = cache.locked(cache.folder() / "set-up.lock")
        with lock, Progress("Looking at what is there") as bar:
            if isinstance(archive, OwnArchive):
                bar.stage(f"Unpacking {archive.file.name}")
                archive.unpack(cache.folder())
            else:
                comfyui.fetch(Path(sys.executable), cache.folder(), bar, archive)
    if isinstance(archive, Archive):
        return Tree(archive.comfyui, folder, has_own_packages=False)
    newest = comfyui.PINNED.folder(cache.folder())
    tree = Tree(read_version(folder), folder, asks_for_others(folder, newest))
    print(f"{archive.file.name}: ComfyUI {tree.version}, SHA-256 {archive.sha256}", flush=True)
    return tree


def _run_tests(tree: Tree, python: Python, tests: list[str]) -> Cell:
    """In a process of their own, with pytest's output as it comes."""
    print(
        f"\nComfyUI {tree.version}, Python {python.version}: pytest {' '.join(tests)}", flush=True
    )
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "report.xml"
        options = ["--quiet", "--tb=short", f"--junit-xml={place}"]
        command = [str(python.program), "-m", "devtools.pytest_start", *options, *tests]
        environment = {**os.environ, **THREADS, "COMFYUI_PATH": str(tree.folder)}
        code = subprocess.run(command, cwd=ROOT, env=environment).returncode
        return Cell(tree.version, python.version, code, read_report(place))


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
