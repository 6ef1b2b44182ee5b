"""The help page of every node is where ComfyUI's page looks for it."""

from __future__ import annotations

import pytest
import requests

from devtools.comfyui import ROOT

PAGES = sorted(path.name for path in (ROOT / "web" / "docs").glob("*.md"))


@pytest.mark.parametrize("name", PAGES)
def test_help_page_is_served(server, name):
    reply = requests.get(f"{server.url}/extensions/token-merge/docs/{name}", timeout=30)
    assert reply.ok
    assert len(reply.text) > 300
