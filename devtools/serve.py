"""``python -m devtools serve``: ComfyUI's page with the nodes and workflows in it."""

from __future__ import annotations

import argparse
import time
import webbrowser
from pathlib import Path

from . import cache
from .server import ServerError, link, running


def main(arguments: list[str]) -> int:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m devtools serve", description=__doc__)
    parser.add_argument("--port", type=int, help="port of the page (default: a free one)")
    parser.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="a checkpoint to offer in the page"
    )
    options = parser.parse_args(arguments)
    # The same folder every time: what is saved in the page is there again.
    base = cache.folder() / "serve"
    try:
        if options.checkpoint:
            file = options.checkpoint.expanduser().absolute()
            link(base / "models" / "checkpoints" / file.name, file)
        print("Starting ComfyUI", flush=True)
        with running(base, port=options.port) as server:
            print(f"ComfyUI is at {server.url} (its log: {server.log})", flush=True)
            print("The workflows: Templates, then token-merge. Ctrl-C stops.", flush=True)
            webbrowser.open(server.url)
            while True:
                server.check()
                time.sleep(1)
    except ServerError as error:
        print(f"devtools: {error}")
        return 1
    except KeyboardInterrupt:
        print("\nStopped")
        return 0
