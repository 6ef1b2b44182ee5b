"""The command ``quality``: train the model, measure with it, draw what was measured."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .. import loading, machine
from ..trained.places import WEIGHTS
from . import places

if TYPE_CHECKING:
    from .patches import PictureVariant

WIDTH = 130
"""Of the table; a narrower terminal breaks its lines, which is better than losing columns."""


def main(arguments: list[str], kept: Path) -> int:
    """0 where everything was done, 1 where it failed, 130 when interrupted.

    kept: the default folder for what can be made again.
    """
    options = _parse(arguments, kept)
    console = Console()
    console.width = max(console.width, WIDTH)
    try:
        loading.load(options.device)
        _limit_threads(options.threads)
        actions = {"train": _train, "measure": _measure, "draw": _draw}
        actions[options.action](options, console)
    except (RuntimeError, OSError) as error:
        console.print(f"[bold red]quality failed.[/] {error}", highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted; the same command goes on from here")
        return 130
    return 0


def _train(options: argparse.Namespace, console: Console) -> None:
    import torch

    from ..trained.network import SHAPES
    from ..trained.recipe import ON_CPU, ON_GPU
    from ..trained.train import TrainingRun, train

    recipe = ON_GPU if options.device == "cuda" else ON_CPU[options.model]
    shape = SHAPES[options.model]()
    run = TrainingRun(recipe, options.kept, torch.device(options.device), shape)
    state = train(run, options.weights, console)
    recent = state.losses[-100:]
    console.print(f"Loss {sum(recent) / len(recent):.4f} over the last {len(recent)} steps")
    console.print(f"Weights: {options.weights}", soft_wrap=True)


def _measure(options: argparse.Namespace, console: Console) -> None:
    import torch

    from ..trained import weights
    from . import measure, sampling, tables, timing
    from .pairs import Pairs
    from .report import Report
    from .variants import list_variants

    model = weights.load(options.weights, options.device, torch.bfloat16)
    exact = weights.load(options.weights, options.device)
    judge = exact if options.model == "unet" else weights.load(device=options.device)
    mark = measure.fingerprint(exact)
    pairs = Pairs.make(options.pairs, options.tokens, options.kept)
    kept = options.kept / f"runs-{mark}-{options.tokens}"
    bench = measure.Bench(model, exact, judge, pairs, sampling.STEPS, kept)
    place = options.out / "results.json"
    report = Report.read(place)
    if report.model.get("fingerprint", mark) != mark:
        raise RuntimeError(f"{place} was measured with other weights, expected {mark}; remove it")
    report.machine = machine.describe(options.device, loading.ROOT)
    report.model = {"file": options.weights.name, "fingerprint": mark}
    timed = timing.TOKENS[options.model]
    note = options.note or report.settings.get("note")
    report.settings = {
        "pairs": options.pairs,
        "computed in": "bfloat16",
        "tokens": f"{options.tokens} x {options.tokens}",
        "sampler": f"euler, normal schedule, {sampling.STEPS} steps, cfg 1",
        "predictions": f"{measure.PREDICTED} pictures, every {measure.STRIDE}nd step",
        "speed": f"{timed} x {timed} tokens, 1 row, {len(timing.TIMED)} calls a round",
    }
    if note:
        report.settings["note"] = note
    columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn())
    chosen = _choose(list_variants(options.model), options.only)
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        if "predictions" in options.parts:
            measure.measure_predictions(bench, chosen, report, place, progress)
        if "pictures" in options.parts:
            measure.measure_floor(bench, report, place)
            measure.measure_pictures(bench, chosen, report, place, progress)
        if "speed" in options.parts:
            rounds = options.rounds
            timing.measure(model, pairs, chosen, rounds, timed, report, place, progress)
    same_model = places.find_results(options.model, 0).name.replace("0", "[0-9]*")
    timing.reuse(report, sorted(options.out.parent.glob(same_model)))
    timing.add_published(report, chosen, places.SPEED_RESULTS)
    report.write(place)
    console.print(tables.build_table(report))
    console.print(f"Numbers: {place}", soft_wrap=True)


def _choose(variants: list[PictureVariant], names: list[str] | None) -> list[PictureVariant]:
    """Those with these names; all where none is named."""
    known = {variant.name: variant for variant in variants}
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise RuntimeError(f"--only is {unknown[0]!r}, expected names out of {', '.join(known)}")
    return [known[name] for name in names] if names else variants


def _draw(options: argparse.Namespace, console: Console) -> None:
    from .drawing import draw

    files = draw(options.out, options.model, options.weights, options.kept, options.tokens)
    for file in files:
        console.print(f"Drawn: {file}", soft_wrap=True)


def _limit_threads(threads: int | None) -> None:
    import torch

    if threads:
        torch.set_num_threads(threads)


def _parse(arguments: list[str], kept: Path) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m devtools quality", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    train = actions.add_parser("train", help="make the weights; goes on where it was stopped")
    measure = actions.add_parser("measure", help="error and speed of every variant against plain")
    draw = actions.add_parser("draw", help="plots, contact sheets and sample sheets as PNG")
    for action in (train, measure, draw):
        action.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
        action.add_argument(
            "--model", choices=[*WEIGHTS], default="unet", help="(default: %(default)s)"
        )
        action.add_argument("--threads", type=int, metavar="N", help="of torch (default: its own)")
        action.add_argument("--weights", type=_path, metavar="FILE", help="default: ours")
        action.add_argument(
            "--kept", type=_path, default=kept, metavar="DIR", help="pictures and checkpoints"
        )
    for action in (measure, draw):
        action.add_argument(
            "--tokens", type=int, default=64, metavar="N", help="a side (default: %(default)s)"
        )
        action.add_argument(
            "--out",
            type=_path,
            metavar="DIR",
            help="default: benchmarks/quality/results/NxN-tokens",
        )
    measure.add_argument(
        "--parts",
        nargs="+",
        choices=["predictions", "pictures", "speed"],
        default=["predictions", "speed", "pictures"],
    )
    measure.add_argument("--pairs", type=int, default=64, metavar="N", help="seeds and prompts")
    measure.add_argument(
        "--only", nargs="+", metavar="NAME", help="variants, as the table names them; default: all"
    )
    measure.add_argument("--rounds", type=int, default=3, metavar="N", help="of timing")
    measure.add_argument(
        "--note", metavar="TEXT", help="kept in the file: what its numbers are to be read with"
    )
    options = parser.parse_args(arguments)
    options.weights = options.weights or WEIGHTS[options.model]
    if options.action != "train" and options.out is None:
        options.out = places.find_results(options.model, options.tokens)
    return options


def _path(text: str) -> Path:
    return Path(text).absolute()
