"""The command line of ``test``."""

from __future__ import annotations

import argparse

DESCRIPTION = """\
Runs ruff (lint and format), mypy and pytest on a real ComfyUI, each even where an earlier one
failed. The tests are a short run that finds nearly everything; --all adds the thorough ones, and
--rest runs these alone, without ruff and mypy. All arguments go to pytest. Without any but those
two, the tests of all folders run, in two processes.
"""
EXAMPLES = """\
examples:
  python -m devtools test                        ruff, mypy and the short run
  python -m devtools test --all                  ruff, mypy and every test
  python -m devtools test --rest                 the tests that the short run leaves out
  python -m devtools test tests/nodes -x         one folder's short run, to the first failure
  python -m devtools test tests/nodes --all      every test of that folder
  python -m devtools test -k merge               tests with this word in their name
"""


def parse(arguments: list[str]) -> list[str]:
    """The arguments for pytest: all of them. Ends the process on ``--help``."""
    parser = argparse.ArgumentParser(
        prog="python -m devtools test",
        usage="%(prog)s [-h] [--all | --rest] [pytest's arguments]",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.parse_known_args(arguments)
    return arguments
