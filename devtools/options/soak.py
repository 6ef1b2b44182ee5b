"""The command line of ``soak``, and its parts."""

from __future__ import annotations

import argparse
from dataclasses import dataclass


@dataclass(frozen=True)
class SoakPart:
    """files: the tests, from the checkout's folder on. cases: how many the long form has."""

    files: str
    cases: int
    text: str


PARTS = {
    "core": SoakPart("tests/core/test_fuzz_*.py", 21_000, "random settings, grids and tokens"),
    "nodes": SoakPart("tests/nodes/test_fuzz_*.py", 700, "random inputs, latents and models"),
    "prompts": SoakPart("tests/server/test_fuzz_*.py", 200, "random graphs on a server"),
    "leftovers": SoakPart(
        "tests/nodes/test_leftovers.py", 20, "runs after which nothing of them is left"
    ),
    "queue": SoakPart("tests/server/test_queue.py", 300, "prompts on a server, and its memory"),
    "interrupts": SoakPart(
        "tests/server/test_interrupts.py", 50, "prompts that are stopped while they are sampled"
    ),
    "clients": SoakPart("tests/server/test_clients.py", 20, "prompts of two clients at once"),
    "reload": SoakPart("tests/server/test_reload.py", 10, "times all models are unloaded"),
}
GROUPS = {"fuzz": ("core", "nodes", "prompts"), "all": tuple(PARTS)}
DESCRIPTION = (
    "Random input and long runs, far more of both than `python -m devtools test` has. Every case "
    "must end in a right result or in one clear error."
)


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options, ``parts`` without groups; ends the process on ``--help`` and on a mistake."""
    parser = argparse.ArgumentParser(
        prog="python -m devtools soak",
        description=DESCRIPTION,
        epilog="\n".join(
            ["parts:"]
            + [f"  {name:<10} {part.cases:,} {part.text}" for name, part in PARTS.items()]
            + [f"  {name:<10} {', '.join(names)}" for name, names in GROUPS.items()]
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        type=_part,
        help="what to run, in this order (default: all)",
    )
    parser.add_argument(
        "--cases",
        type=_positive,
        metavar="N",
        help="of each part (default: see the list below)",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="of the random cases (default: another each time)"
    )
    options = parser.parse_args(arguments)
    named = options.parts or ["all"]
    options.parts = list(
        dict.fromkeys(part for name in named for part in GROUPS.get(name, (name,)))
    )
    return options


def _part(text: str) -> str:
    names = [*PARTS, *GROUPS]
    if text not in names:
        raise argparse.ArgumentTypeError(f"is {text}, expected one of {', '.join(names)}")
    return text


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"is {text}, expected a whole number from 1")
    return int(text)
