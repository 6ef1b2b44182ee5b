"""The help page of every node is where ComfyUI's page looks for it."""

from __future__ import annotations

import pytest
import requests

from devtools.comfyui import ROOT

HELP = ROOT / "web" / "docs"
PAGES = sorted(path.relative_to(HELP).as_posix() for path in HELP.rglob("*.md"))


@pytest.mark.parametrize("name", PAGES)
def test_help_page_is_served(server, name):
    reply = requests.get(f"{server.url}/extensions/token-merge/docs/{name}", timeout=30)
    assert reply.ok
    assert len(reply.text) > 300
