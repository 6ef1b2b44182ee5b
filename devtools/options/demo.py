"""The command line of ``demo``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

DEFAULT_STEPS = 4
DEFAULT_PIXELS = 512
"""A picture has this side, and so 64 x 64 tokens: as many as Flux at 1024 x 1024."""

DESCRIPTION = (
    "The unpatched model, each node, and fewer steps in the same time, with the same seed: seconds "
    "of sampling, and the pictures side by side. The variants take turns within a round."
)


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options; ends the process on ``--help`` and on a mistake."""
    parser = argparse.ArgumentParser(prog="python -m devtools demo", description=DESCRIPTION)
    parser.add_argument(
        "--checkpoint",
        type=_file,
        metavar="FILE",
        help="use this checkpoint (default: a small Flux for 4 steps, trained on emoji)",
    )
    parser.add_argument(
        "--steps",
        type=_at_least(2),
        metavar="N",
        help=f"sampling steps (default: {DEFAULT_STEPS}, with --checkpoint as in the workflow)",
    )
    parser.add_argument(
        "--rounds",
        type=_at_least(1),
        metavar="N",
        default=3,
        help="counted rounds, after one that warms up (default: %(default)s)",
    )
    parser.add_argument(
        "--size",
        type=_at_least(64),
        metavar="PIXELS",
        help=f"width and height (default: {DEFAULT_PIXELS}, with --checkpoint as in the workflow)",
    )
    parser.add_argument(
        "--out",
        type=lambda text: Path(text).absolute(),
        metavar="PNG",
        default=Path("demo.png").absolute(),
        help="where the pictures go (default: demo.png in this folder)",
    )
    return parser.parse_args(arguments)


def _at_least(least: int) -> Any:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"is {text}, expected a whole number from {least}")
        return int(text)

    return number


def _file(text: str) -> Path:
    path = Path(text).expanduser().absolute()
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"{text} is no file")
    return path
