"""The command line of ``quality``."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..trained.places import TOKENS, WEIGHTS
from . import places, regimes


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options; ends the process on ``--help`` and on a mistake."""
    parser = argparse.ArgumentParser(
        prog="python -m devtools quality",
        description="How close pictures of small trained models stay to the originals.",
    )
    actions = parser.add_subparsers(dest="action", required=True)
    measure = actions.add_parser(
        "measure", help="the error of every variant against the unpatched model"
    )
    _add_measuring(measure)
    measure.add_argument(
        "--against", metavar="NAME", help="a variant: the table adds the gain over it, in dB"
    )
    sheet = actions.add_parser("sheet", help="draw the pictures of variants, with their errors")
    _add_measuring(sheet)
    times = actions.add_parser(
        "times", help="write which setting has the smallest error in a given time"
    )
    times.set_defaults(device="cpu")
    times.add_argument(
        "--speed",
        type=_path,
        metavar="DIR",
        default=places.SPEED_RESULTS,
        help="results of `bench` (default: ours)",
    )
    options = parser.parse_args(arguments)
    if options.action != "times":
        options.regimes = options.regimes or regimes.STANDARD[options.model][:1]
        options.tokens = options.tokens or TOKENS[options.model]
        options.out = options.out or places.find_results(options.model, options.tokens)
    return options


def _add_measuring(measure: argparse.ArgumentParser) -> None:
    measure.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    measure.add_argument("--model", choices=[*WEIGHTS], default="unet", help="default: unet")
    measure.add_argument("--threads", type=int, metavar="N", help="of torch (default: its own)")
    measure.add_argument(
        "--precision",
        choices=["bfloat16", "float32"],
        default="bfloat16",
        help="of the model; some processors are very slow in bfloat16 (default: %(default)s)",
    )
    measure.add_argument(
        "--tokens", type=int, metavar="N", help="a side (default: those of its training)"
    )
    measure.add_argument("--pairs", type=int, default=16, metavar="N", help="seeds and prompts")
    measure.add_argument(
        "--regimes",
        nargs="+",
        type=regimes.parse,
        metavar="NAME",
        help="sampler-scheduler-steps-cfgN; worth measuring, the default first: "
        + "; ".join(
            f"{model}: {', '.join(one.name for one in standard)}"
            for model, standard in regimes.STANDARD.items()
        ),
    )
    measure.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        help='variants, as the table names them, or several by a pattern: "unpatched*" '
        "(default: all)",
    )
    measure.add_argument(
        "--out", type=_path, metavar="DIR", help="default: benchmarks/quality/results/MODEL"
    )


def _path(text: str) -> Path:
    return Path(text).absolute()
