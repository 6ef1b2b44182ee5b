"""The command line of ``quality``."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..trained.places import WEIGHTS
from . import places, regimes


def parse(arguments: list[str], kept: Path) -> argparse.Namespace:
    """kept: the default folder for what can be made again."""
    parser = argparse.ArgumentParser(
        prog="python -m devtools quality",
        description="Train the model, measure with it, draw what was measured.",
    )
    actions = parser.add_subparsers(dest="action", required=True)
    train = actions.add_parser("train", help="make the weights; goes on where it was stopped")
    measure = actions.add_parser("measure", help="error and speed of every variant against plain")
    draw = actions.add_parser("draw", help="plots, contact sheets and sample sheets as PNG")
    for action in (train, measure, draw):
        _add_common(action, kept)
    for action in (measure, draw):
        _add_results(action)
    _add_measuring(measure)
    options = parser.parse_args(arguments)
    options.weights = options.weights or WEIGHTS[options.model]
    if options.action != "train" and options.out is None:
        options.out = places.find_results(options.model, options.tokens)
    return options


def _add_common(action: argparse.ArgumentParser, kept: Path) -> None:
    action.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    action.add_argument(
        "--model", choices=[*WEIGHTS], default="unet", help="(default: %(default)s)"
    )
    action.add_argument("--threads", type=int, metavar="N", help="of torch (default: its own)")
    action.add_argument("--weights", type=_path, metavar="FILE", help="default: ours")
    action.add_argument(
        "--kept", type=_path, default=kept, metavar="DIR", help="pictures and checkpoints"
    )


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
        default=[regimes.DEFAULT],
        metavar="NAME",
        help=f"sampler-scheduler-steps-cfgN (default: {regimes.DEFAULT.name}); worth measuring: "
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
        help="speed is measured with the default regime alone, as it does not depend on it",
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
