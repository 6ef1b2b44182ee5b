"""The command ``quality``: train or distil a model, measure with it, draw what was measured."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from .. import loading
from ..waiting import waiting
from . import options as command_line
from .regimes import find_default

if TYPE_CHECKING:
    from ..trained.state import TrainingState

COMPARED = 8
"""Pictures of a distilled model that are compared with its teacher's."""


def main(arguments: list[str], kept: Path) -> int:
    """0 where everything was done, 1 where it failed, 130 when interrupted.

    kept: the default folder for what can be made again.
    """
    options = command_line.parse(arguments, kept)
    console = Console()
    try:
        with waiting(console, "Importing ComfyUI"):
            loading.load(options.device)
            _limit_threads(options.threads)
        actions = {
            "train": _train,
            "distil": _distil,
            "measure": _measure,
            "times": _times,
            "draw": _draw,
        }
        actions[options.action](options, console)
    except (RuntimeError, OSError) as error:
        console.print(f"[bold red]quality failed.[/] {error}", highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted; the same command goes on from here")
        return 130
    return 0


def _train(options: argparse.Namespace, console: Console) -> None:
    with waiting(console, "Importing what trains"):
        import torch

        from ..trained.network import SHAPES
        from ..trained.recipe import ON_CPU, ON_GPU
        from ..trained.train import TrainingRun, train

    parts = ON_GPU if options.device == "cuda" else ON_CPU[options.model]
    shape = SHAPES[options.model]()
    device, dtype = torch.device(options.device), getattr(torch, options.precision)
    run = TrainingRun(parts, options.kept, device, shape, dtype=dtype)
    _print_end(train(run, options.weights, console), options, console)


def _times(options: argparse.Namespace, console: Console) -> None:
    from ..markdown import replace_table
    from ..speed.results import Results
    from .equal_time import write_tables

    document = loading.ROOT / "docs" / "quality.md"
    text = document.read_text(encoding="utf-8")
    tables = write_tables(Results.read(options.speed).cases)
    if not tables:
        raise RuntimeError(
            f"--speed is {options.speed}, where no shape of the document was timed; "
            "expected a folder with results of `python -m devtools bench`"
        )
    for table in tables:
        console.print(table, soft_wrap=True, highlight=False, markup=False)
        text = replace_table(text, table, known_by=2)
    document.write_text(text, encoding="utf-8")


def _distil(options: argparse.Namespace, console: Console) -> None:
    with waiting(console, "Importing what trains"):
        import torch

        from ..trained import weights
        from ..trained.distil import DistillationRun, distil
        from ..trained.recipe import DISTILLED
        from . import distance_to_teacher
        from .pairs import Pairs

    recipe = DISTILLED[options.model]
    device, dtype = torch.device(options.device), getattr(torch, options.precision)
    run = DistillationRun(recipe, options.kept, device, options.model, options.teacher, dtype=dtype)
    _print_end(distil(run, options.weights, console), options, console)
    with waiting(console, "Comparing pictures with the teacher's"):
        teacher, student = (weights.load(file, device) for file in (run.teacher, options.weights))
        pairs = Pairs.make(COMPARED, recipe.stages[-1].tokens, options.kept, held_out=COMPARED)
        regime = find_default(options.model)
        compared = distance_to_teacher.describe(teacher, student, pairs, regime)
    console.print(compared, highlight=False)


def _print_end(state: TrainingState, options: argparse.Namespace, console: Console) -> None:
    recent = state.losses[-100:]
    console.print(f"Loss {sum(recent) / len(recent):.4f} over the last {len(recent)} steps")
    console.print(f"Weights: {options.weights}", soft_wrap=True)


def _measure(options: argparse.Namespace, console: Console) -> None:
    with waiting(console, "Importing what measures"):
        from . import clip_session, session, tables

    console.width = max(console.width, tables.WIDTH)
    run = clip_session.run if options.kind == "wan" else session.run
    run(options, console)


def _draw(options: argparse.Namespace, console: Console) -> None:
    with waiting(console, "Drawing"):
        from . import clip_samples
        from .drawing import draw

        files = [file for regime in options.regimes for file in draw(options, regime)]
        if options.kind == "wan":
            files += clip_samples.draw(options.kept, options.weights)
    for file in files:
        console.print(f"Drawn: {file}", soft_wrap=True)


def _limit_threads(threads: int | None) -> None:
    import torch

    if threads:
        torch.set_num_threads(threads)
