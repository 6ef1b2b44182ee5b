"""The command line of ``matrix``."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from ..comfyui import ARCHIVES, ROOT
from ..own_archive import OwnArchive

FOLDERS = ("tests/core", "tests/nodes", "tests/transformers", "tests/interplay")
"""These tests know nothing of ComfyUI's server and page, which come in packages of their own. All
of them run, not the short run alone."""

DESCRIPTION = (
    "Runs tests on each ComfyUI that the nodes support, and prints what each version passed and "
    "what it lacks. Needs several minutes a version."
)
EXAMPLES = """\
examples:
  python -m devtools matrix                             every version
  python -m devtools matrix --versions 0.16.3 0.30.0    the lowest and the newest
  python -m devtools matrix --python 3.10 3.13          with other Pythons than this one
  python -m devtools matrix --archive comfyui.tar.xz    another ComfyUI, with its own packages
  python -m devtools matrix -- tests/nodes --all -x     other tests (without --all the short run)
"""


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options; ends the process on ``--help`` and on a mistake.

    ``archives``: of the chosen versions, then the user's own. ``tests``: what stands behind
    ``--``, for pytest.
    """
    parser = argparse.ArgumentParser(
        prog="python -m devtools matrix",
        usage="%(prog)s [-h] [--versions ...] [--python ...] [-- pytest's arguments]",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = {archive.comfyui: archive for archive in ARCHIVES}
    parser.add_argument(
        "--versions",
        nargs="+",
        metavar="VERSION",
        choices=known,
        default=[],
        help=f"of ComfyUI: any of {', '.join(known)} (default: all, but none with --archive)",
    )
    parser.add_argument(
        "--archive",
        nargs="+",
        metavar="FILE",
        type=_archive,
        default=[],
        help="tar archives with a ComfyUI in each; one that asks for other packages than the "
        "newest version above gets them in an environment of its own",
    )
    parser.add_argument(
        "--python",
        nargs="+",
        metavar="PYTHON",
        type=_program,
        default=[],
        help="versions or programs: 3.10 is python3.10 (default: the one that runs this)",
    )
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:at])
    versions = options.versions or ([] if options.archive else known)
    options.archives = [*(known[version] for version in versions), *options.archive]
    here = [name for name in FOLDERS if (ROOT / name).is_dir()]
    options.tests = arguments[at + 1 :] or [*here, "--all"]
    return options


def _archive(text: str) -> OwnArchive:
    file = Path(text)
    if not file.is_file():
        raise argparse.ArgumentTypeError(f"found no file {text}")
    return OwnArchive.read(file)


def _program(text: str) -> str:
    program = shutil.which(f"python{text}") or shutil.which(text)
    if program is None:
        raise argparse.ArgumentTypeError(f"found neither python{text} nor {text}")
    return program
