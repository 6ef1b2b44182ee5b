"""The command line of ``quality``."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..trained.places import TEACHERS, WEIGHTS, find_kind
from . import places, regimes


def parse(arguments: list[str], kept: Path) -> argparse.Namespace:
    """kept: the default folder for what can be made again."""
    parser = argparse.ArgumentParser(
        prog="python -m devtools quality",
        description="Train or distil a model, measure with it, draw what was measured.",
    )
    actions = parser.add_subparsers(dest="action", required=True)
    train = actions.add_parser("train", help="make the weights; goes on where it was stopped")
    distil = actions.add_parser(
        "distil", help="make a model for few steps from a trained one; goes on where it was stopped"
    )
    measure = actions.add_parser("measure", help="error and speed of every variant against plain")
    times = actions.add_parser(
        "times", help="write which setting gives the nearest picture in a given time"
    )
    times.add_argument(
        "--speed",
        type=_path,
        metavar="DIR",
        default=places.SPEED_RESULTS,
        help="results of `bench` (default: ours)",
    )
    times.set_defaults(device="cpu", threads=None)
    draw = actions.add_parser("draw", help="plots, contact sheets and sample sheets as PNG")
    _add_common(train, kept, [model for model in WEIGHTS if model not in TEACHERS])
    _add_common(distil, kept, [*TEACHERS])
    for action in (train, distil, measure, draw):
        _add_precision(action)
    for action in (measure, draw):
        _add_common(action, kept, [*WEIGHTS])
        _add_results(action)
    _add_distilling(distil)
    _add_measuring(measure)
    options = parser.parse_args(arguments)
    if options.action == "times":
        return options
    options.weights = options.weights or WEIGHTS[options.model]
    if options.action == "distil":
        _complete_distilling(options, distil)
    elif options.action != "train":
        _complete_results(options)
    return options


def _add_common(action: argparse.ArgumentParser, kept: Path, models: list[str]) -> None:
    """models: to choose from, the default first."""
    action.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    action.add_argument("--model", choices=models, default=models[0], help="(default: %(default)s)")
    action.add_argument("--threads", type=int, metavar="N", help="of torch (default: its own)")
    action.add_argument("--weights", type=_path, metavar="FILE", help="default: ours")
    action.add_argument(
        "--kept", type=_path, default=kept, metavar="DIR", help="pictures and checkpoints"
    )


def _add_precision(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--precision",
        choices=["bfloat16", "float32"],
        default="bfloat16",
        help="of the model; some processors are very slow in bfloat16 (default: %(default)s)",
    )


def _add_distilling(distil: argparse.ArgumentParser) -> None:
    distil.add_argument(
        "--teacher", type=_path, metavar="FILE", help="weights to start from (default: ours)"
    )


def _complete_distilling(options: argparse.Namespace, distil: argparse.ArgumentParser) -> None:
    options.teacher = options.teacher or WEIGHTS[TEACHERS[options.model]]
    if options.weights == options.teacher:
        distil.error(f"--weights is {options.weights}, which the teacher is read from")


def _complete_results(options: argparse.Namespace) -> None:
    options.kind = find_kind(options.model)
    options.regimes = options.regimes or [regimes.find_default(options.model)]
    options.out = options.out or places.find_results(options.model, options.tokens)


def _add_results(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--tokens", type=int, default=64, metavar="N", help="a side (default: %(default)s)"
    )
    action.add_argument(
        "--out", type=_path, metavar="DIR", help="default: benchmarks/quality/results/NxN-tokens"
    )
    action.add_argument(
        "--regimes",
        nargs="+",
        type=regimes.parse,
        metavar="NAME",
        help="sampler-scheduler-steps-cfgN, or with -denoiseN behind it: clips are then made anew "
        f"in part (default: {regimes.DEFAULT.name}; of a model for few steps the one that it was "
        "made for); worth measuring: "
        + "; ".join(
            f"{kind}: {', '.join(one.name for one in standard)}"
            for kind, standard in regimes.STANDARD.items()
        ),
    )
    action.add_argument(
        "--against", metavar="NAME", help="a variant: the table adds the gain over it, in dB"
    )


def _add_measuring(measure: argparse.ArgumentParser) -> None:
    measure.add_argument(
        "--parts",
        nargs="+",
        choices=["predictions", "pictures", "speed"],
        default=["predictions", "speed", "pictures"],
        help=f"speed is measured with {regimes.DEFAULT.name} alone, as it does not depend on that",
    )
    measure.add_argument("--pairs", type=int, default=64, metavar="N", help="seeds and prompts")
    measure.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        help='variants, as the table names them, or several by a pattern: "plain*"; default: all',
    )
    measure.add_argument("--rounds", type=int, default=3, metavar="N", help="of timing")
    measure.add_argument(
        "--note", metavar="TEXT", help="kept in the file: what its numbers are to be read with"
    )


def _path(text: str) -> Path:
    return Path(text).absolute()
