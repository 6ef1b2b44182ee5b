"""The command line of ``train``. Only the standard library, so that ``--help`` needs no torch."""

from __future__ import annotations

import argparse
from pathlib import Path

CHAINS = (("unet",), ("flux", "flux-4-steps"), ("wan",))
"""Models in the order of training; one may be the teacher of the next in its chain."""
MODELS = tuple(model for chain in CHAINS for model in chain)


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options; ends the process on ``--help`` and on a mistake."""
    parser = argparse.ArgumentParser(
        prog="python -m devtools train",
        description="Trains the small models that quality is measured with, on scenes of emoji.",
    )
    parser.add_argument(
        "part",
        choices=["data", "run", "pack"],
        help="fetch the emoji through npm; train; make a folder that trains on a bare GPU machine",
    )
    parser.add_argument("folder", type=_path, nargs="?", metavar="DIR", help="of pack")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS, help="default: all")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument(
        "--minutes",
        type=float,
        default=9.0,
        metavar="M",
        help="of all models together; on a GPU they are trained at the same time",
    )
    parser.add_argument("--steps", type=int, metavar="N", help="of each model, at most")
    parser.add_argument("--tokens", type=int, metavar="N", help="a side, at most")
    parser.add_argument("--batch", type=int, metavar="N", help="scenes a step, at most")
    parser.add_argument("--subjects", type=int, metavar="N", help="emoji to learn")
    parser.add_argument("--guidance", type=float, default=2.0, metavar="G", help="of the samples")
    parser.add_argument("--no-compile", action="store_true", help="nothing by torch.compile")
    parser.add_argument("--quick", action="store_true", help="tiny models, four steps: a test")
    parser.add_argument(
        "--data", type=_path, metavar="FILE", help="the selection of emoji; default: the cache's"
    )
    parser.add_argument(
        "--out",
        type=_path,
        default=_path("trained"),
        metavar="DIR",
        help="for weights and samples; weights that lie there are trained on",
    )
    options = parser.parse_args(arguments)
    if (options.part == "pack") != (options.folder is not None):
        parser.error("pack, and it alone, takes a folder")
    return options


def _path(text: str) -> Path:
    return Path(text).absolute()
