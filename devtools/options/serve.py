"""The command line of ``serve``."""

from __future__ import annotations

import argparse
from pathlib import Path


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options; ends the process on ``--help`` and on a mistake."""
    parser = argparse.ArgumentParser(
        prog="python -m devtools serve",
        description="Opens ComfyUI's page with the nodes and workflows in it. Ctrl-C stops.",
    )
    parser.add_argument("--port", type=int, help="port of the page (default: a free one)")
    parser.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="a checkpoint to offer in the page"
    )
    return parser.parse_args(arguments)
