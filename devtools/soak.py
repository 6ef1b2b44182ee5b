"""``python -m devtools soak``: the fuzz tests and long runs of the suite, in their long form.

The tests are those of ``python -m devtools test``, which runs a few cases of each.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time

from .check import THREADS
from .comfyui import ROOT
from .options.soak import PARTS, SoakPart, parse

SECONDS = 4 * 3600
"""One test takes at most so long; the suite's own limit is for its short form."""


def main(arguments: list[str]) -> int:
    """Run each part in a process of its own; the exit code is the first that is not 0."""
    options = parse(arguments)
    seed = random.randrange(10**6) if options.seed is None else options.seed
    codes = []
    for name in options.parts:
        start = time.monotonic()
        codes.append(_run(PARTS[name], options.cases or PARTS[name].cases, seed))
        print(f"{name}: {time.monotonic() - start:.0f} s, seed {seed}", flush=True)
    return next((code for code in codes if code), 0)


def _run(part: SoakPart, cases: int, seed: int) -> int:
    files = sorted(str(path) for path in ROOT.glob(part.files))
    command = [
        *(sys.executable, "-m", "devtools.pytest_start", "-q", "--all", *files),
        *(f"--cases={cases}", f"--hypothesis-seed={seed}", f"--timeout={SECONDS}"),
    ]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **THREADS}).returncode
