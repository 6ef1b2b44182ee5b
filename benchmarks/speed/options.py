"""The command line of ``bench``. Only the standard library, so that ``--help`` needs no torch."""

from __future__ import annotations

import argparse
from pathlib import Path

PARTS = (
    "unet",
    "steps",
    "graph",
    "attention",
    "transformer",
    "planning",
    "similarity",
    "correction",
    "compile",
    "published",
    "whole",
    "peers",
    "cost",
)
DESCRIPTION = "Measures the nodes against their peers and the limit of each setting."
CLIPS = ("flux-1024", "flux-1536", "flux-2048", "wan-480p", "wan-720p")


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options; ends the process on ``--help`` and on a mistake."""
    parser = argparse.ArgumentParser(
        prog="python -m devtools bench",
        description=DESCRIPTION,
    )
    parser.add_argument(
        "part",
        nargs="?",
        choices=[*PARTS, "all"],
        default="all",
        help="whole models, steps of UNets in a row, whole calls as CUDA graphs, one block's "
        "self-attention, diffusion transformers, planning alone, what matching finds on "
        "photographs, what reducing keys does to attention there, torch.compile, the published "
        "table, what layers cost that are left whole, ours beside each peer until the ratio is "
        "sure, or what attention launches and moves on a GPU, counted on any machine "
        "(all: without the last two, and on a CPU without steps in a row, CUDA graphs and the "
        "published table)",
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument(
        "--model",
        nargs="+",
        choices=["sd15", "sdxl"],
        default=["sd15", "sdxl"],
        help="default: both",
    )
    parser.add_argument(
        "--sizes", nargs="+", type=int, metavar="PIXELS", help="instead of the default sizes"
    )
    parser.add_argument(
        "--clips",
        nargs="+",
        choices=CLIPS,
        default=CLIPS,
        help="pictures and videos of the parts transformer and graph; default: all",
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="counted rounds of every case")
    parser.add_argument(
        "--variants",
        choices=["core", "main", "all"],
        help="default: core for large pictures, main for small ones",
    )
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
        "--draw", type=_path, metavar="DIR", help="tables and plots of results that lie there"
    )
    return parser.parse_args(arguments)


def _path(text: str) -> Path:
    return Path(text).absolute()
