"""``python -m devtools serve``: ComfyUI's page with the nodes and workflows in it."""

from __future__ import annotations

import time
import webbrowser

from . import cache
from .options.serve import parse
from .server import ServerError, link, running


def main(arguments: list[str]) -> int:
    """Serve until Ctrl-C."""
    options = parse(arguments)
    # The same folder every time: what is saved in the page is there again.
    base = cache.folder() / "serve"
    try:
        if options.checkpoint:
            file = options.checkpoint.expanduser().absolute()
            link(base / "models" / "checkpoints" / file.name, file)
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
