"""The command line of ``thumbnails``."""

from __future__ import annotations

import argparse


def parse(arguments: list[str]) -> argparse.Namespace:
    """No options; ends the process on ``--help`` and on a mistake."""
    parser = argparse.ArgumentParser(
        prog="python -m devtools thumbnails",
        description="Runs each example with a small trained model, without and with our node, and "
        "draws both into the picture that ComfyUI's template browser shows. Needs minutes.",
    )
    return parser.parse_args(arguments)
