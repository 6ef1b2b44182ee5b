"""``python -m devtools COMMAND``: builds the sandbox where it is missing and runs COMMAND in it."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

from . import comfyui, packages, sandbox
from .progress import Progress

# One line a command: its name, the module here whose ``main(arguments)`` runs it, what it does. The
# module of its name in ``options`` has its command line.
COMMANDS = {
    "demo": ("demo", "generate with and without the nodes: seconds per step, and a picture"),
    "test": ("check", "lint, types and tests, on a real ComfyUI; takes pytest's arguments"),
    "matrix": ("matrix", "the tests on every ComfyUI that the nodes support, oldest to newest"),
    "bench": ("bench", "measure the nodes against their peers and the limit of each setting"),
    "quality": ("quality", "measure how much of the pictures of small models stays"),
    "train": ("train", "train the small models that quality is measured with"),
    "thumbnails": ("thumbnails", "draw the pictures of the examples in the template browser"),
    "soak": ("soak", "random input by the thousand, and long runs"),
    "serve": ("serve", "open ComfyUI's page with the nodes and workflows in it"),
}


def main() -> int:
    """Run the command in this process where it is the sandbox's, else start the sandbox's."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in COMMANDS:
        lines = [f"  {name:<10} {text}" for name, (_, text) in COMMANDS.items()]
        print("usage: python -m devtools COMMAND [--help | options]\n", *lines, sep="\n")
        return 0 if name in ("-h", "--help") else 2
    try:
        sandbox.check_python()
        # Help and mistakes are answered here, before anything is built.
        importlib.import_module(f".options.{name}", __package__).parse(sys.argv[2:])
        ready = sandbox.ready()
    except (packages.SandboxError, comfyui.ComfyUIError) as error:
        print(f"devtools: {error}", file=sys.stderr)
        return 1
    if Path(sys.prefix) == ready.python.parent.parent:
        with Progress(f"Loading {name}"):
            command = importlib.import_module(f".{COMMANDS[name][0]}", __package__)
        return command.main(sys.argv[2:])
    return _hand_over(ready)


def _hand_over(ready: sandbox.Sandbox) -> int:
    command = [str(ready.python), "-m", "devtools", *sys.argv[1:]]
    if os.name != "nt":
        # In place of this process, so that signals reach the one that has to clean up.
        os.execve(command[0], command, ready.environment())
    process = subprocess.Popen(command, env=ready.environment())
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # Ctrl-C reaches both; the sandbox's process says how it ended


def _stop(signal_number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + signal_number)


if __name__ == "__main__":
    # A plain request to end must leave no server behind, as Ctrl-C does not.
    signal.signal(signal.SIGTERM, _stop)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("devtools: interrupted; running the command again goes on from here")
