"""The command line of ``bench``. Only the standard library, so that ``--help`` needs no torch."""

from __future__ import annotations

import argparse
from pathlib import Path

PARTS = ("unet", "transformer", "graph")
BESIDE, WHOLE = "rivals", "models"
"""Parts that are measured only where they are asked for."""
CLIPS = ("flux-1024", "flux-1536", "flux-2048", "wan-480p", "wan-720p")


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options; ends the process on ``--help`` and on a mistake."""
    parser = argparse.ArgumentParser(
        prog="python -m devtools bench",
        description="Measures the nodes against their peers and the limit of each setting.",
    )
    parser.add_argument(
        "part",
        nargs="?",
        choices=[*PARTS, BESIDE, WHOLE, "all"],
        default="all",
        help="whole UNets, blocks of diffusion transformers and their attention, or whole calls "
        "replayed as CUDA graphs (on a GPU alone); rivals: attention of large pictures and videos "
        "beside comfy-kitchen's kernels; models: whole samplings; all is without these two; "
        "default: all",
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    models = ["sd15", "sdxl"]
    parser.add_argument("--model", nargs="+", choices=models, default=models, help="default: both")
    parser.add_argument(
        "--sizes", nargs="+", type=int, metavar="PIXELS", help="of UNets, not the default sizes"
    )
    parser.add_argument(
        "--clips",
        nargs="+",
        choices=CLIPS,
        default=CLIPS,
        help="pictures and videos of transformers; default: all",
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="counted rounds of every case")
    parser.add_argument(
        "--minutes",
        type=float,
        default=float("inf"),
        metavar="M",
        help="start no round that would end later",
    )
    parser.add_argument(
        "--out",
        type=_path,
        metavar="DIR",
        help="default: benchmarks/speed/results/<processor or GPU>",
    )
    parser.add_argument("--quick", action="store_true", help="narrow models, small sizes: a test")
    parser.add_argument(
        "--pack", type=_path, metavar="DIR", help="make a folder to run on a bare GPU machine"
    )
    parser.add_argument(
        "--show", type=_path, metavar="DIR", help="the tables of results that lie there"
    )
    parser.add_argument(
        "--write-documents",
        action="store_true",
        help="put what was measured into README.md and docs/speed.md",
    )
    return parser.parse_args(arguments)


def _path(text: str) -> Path:
    return Path(text).absolute()
