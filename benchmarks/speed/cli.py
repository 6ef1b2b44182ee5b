"""The command ``bench``: what to measure, where the results go."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from rich.console import Console

from .. import loading, machine
from ..waiting import waiting
from .options import parse
from .results import Results
from .tables import build_tables

WIDTH = 124
"""The tables are so wide; a narrower terminal breaks their lines, which is better than losing
columns."""
RESULTS = Path(__file__).absolute().parent / "results"


def main(arguments: list[str]) -> int:
    """0 where everything was measured, 1 where a variant of ours failed, 130 when interrupted."""
    options = parse(arguments)
    console = Console()
    console.width = max(console.width, WIDTH)
    try:
        return _run(options, console)
    except RuntimeError as error:
        console.print(f"[bold red]The benchmark failed.[/] {error}", highlight=False)
        return 1


def _run(options: argparse.Namespace, console: Console) -> int:
    if options.pack:
        from ..packing import add_kitchen, pack

        arguments = '--device cuda --minutes 9 --out "$here/results"'
        with waiting(console, "Packing"):
            text = pack(options.pack, "benchmarks.speed.cli", arguments, add_kitchen)
        console.print(text, soft_wrap=True)
        return 0
    if options.show:
        return _report(Results.read(options.show), options.show, console)
    if options.write_documents:
        loading.load("cpu")
        from . import documents

        documents.write(loading.ROOT)
        return 0
    with waiting(console, "Importing ComfyUI"):
        loading.load(options.device)
        _check_device(options.device)
    out = options.out or RESULTS / machine.name_folder(options.device)
    results = Results() if options.quick else Results.read(out)
    results.machine = machine.describe(options.device, loading.ROOT)
    with waiting(console, "Importing what measures"):  # only now: it imports ComfyUI
        from .plan import measure
        from .session import Session

    deadline = time.monotonic() + 60 * options.minutes
    interrupted = False
    with Session(results, out, console, deadline) as session:
        try:
            measure(session, options)
        except KeyboardInterrupt:
            console.print("Interrupted; what was measured is kept")
            interrupted = True
    code = _report(results, out, console)
    return 130 if interrupted else code


def _check_device(device: str) -> None:
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise RuntimeError("device is cuda, expected a GPU that this torch can use")


def _report(results: Results, out: Path, console: Console) -> int:
    """Tables on the terminal and in a file."""
    tables = build_tables(results)
    console.print(tables)
    with open(out / "tables.txt", "w", encoding="utf-8") as file:
        Console(file=file, width=WIDTH).print(tables)
    console.print(f"Numbers: {out / 'results.json'}", soft_wrap=True)
    failed = [one for case in results.cases for one in case.measured if one.failed]
    return 1 if any(one.kind == "ours" for one in failed) else 0
