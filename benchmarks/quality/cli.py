"""The command ``quality``: measure with a trained model, write tables of what was measured."""

from __future__ import annotations

import argparse

from rich.console import Console

from .. import loading
from ..markdown import replace_table
from ..speed.results import Results
from ..waiting import waiting
from . import options as command_line


def main(arguments: list[str]) -> int:
    """0 where everything was done, 1 where it failed, 130 when interrupted."""
    options = command_line.parse(arguments)
    console = Console()
    try:
        with waiting(console, "Importing ComfyUI"):
            loading.load(options.device)
        (_times if options.action == "times" else _measure)(options, console)
    except (RuntimeError, OSError) as error:
        console.print(f"[bold red]quality failed.[/] {error}", highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted; the same command goes on from here")
        return 130
    return 0


def _measure(options: argparse.Namespace, console: Console) -> None:
    with waiting(console, "Importing what measures"):
        import torch

        from . import measure, sheets, tables

    if options.threads:
        torch.set_num_threads(options.threads)
    console.width = max(console.width, tables.WIDTH)
    (sheets if options.action == "sheet" else measure).run(options, console)


def _times(options: argparse.Namespace, console: Console) -> None:
    from . import places, plots
    from .equal_time import write_tables
    from .rivals_table import write_rivals

    document = loading.ROOT / "docs" / "quality.md"
    text = document.read_text(encoding="utf-8")
    cases = Results.read(options.speed).cases
    tables = write_tables(cases)
    if not tables:
        raise RuntimeError(
            f"--speed is {options.speed}, where no shape of the document was timed; "
            "expected a folder with results of `python -m devtools bench`"
        )
    for table in [*tables, write_rivals()]:
        console.print(table, soft_wrap=True, highlight=False, markup=False)
        text = replace_table(text, table, known_by=2)
    document.write_text(text, encoding="utf-8")
    plots.draw(plots.list_panels(cases), places.PLOTS)
