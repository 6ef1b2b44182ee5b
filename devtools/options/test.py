"""The command line of ``test``."""

from __future__ import annotations

import argparse

DESCRIPTION = """\
Runs ruff (lint and format), mypy and pytest on a real ComfyUI, each even where an earlier one
failed. All arguments go to pytest. Without any, it runs every test, in two processes.
"""
EXAMPLES = """\
examples:
  python -m devtools test                     everything
  python -m devtools test tests/nodes -x      one folder, to the first failure
  python -m devtools test -k merge            tests with this word in their name
"""


def parse(arguments: list[str]) -> list[str]:
    """The arguments for pytest: all of them. Ends the process on ``--help``."""
    parser = argparse.ArgumentParser(
        prog="python -m devtools test",
        usage="%(prog)s [-h] [pytest's arguments]",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.parse_known_args(arguments)
    return arguments
