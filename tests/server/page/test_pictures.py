"""The picture of the README, from a real run of the small trained model.

``TOKEN_MERGE_SCREENSHOTS=docs/images pytest tests/server/page/test_pictures.py`` draws it anew.
The graph has 4,096 tokens, so a run takes a while: without that folder nothing is drawn.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from support.page import scripts
from support.page.browser import wait_for
from support.page.graphs import sample_with

pytestmark = pytest.mark.skipif(
    not os.environ.get("TOKEN_MERGE_SCREENSHOTS"), reason="TOKEN_MERGE_SCREENSHOTS names no folder"
)
MARGIN = 16
TITLES = {"1": "A small trained model", "2": "Prompt", "7": "Negative prompt"}
PLACES = {
    "1": (0, 0, 220, 90),
    "2": (0, 140, 220, 110),
    "7": (0, 300, 220, 90),
    "11": (260, 0, 346, 200),
    "3": (260, 270, 346, 110),
    "4": (646, 0, 260, 270),
    "5": (646, 330, 260, 60),
    "6": (946, 0, 300, 390),
}
ORIGIN = (110, 250)  # below the page's own buttons and messages


def save(page, name: str, box: Sequence[int]) -> None:
    """The part of the page in (left, top, right, bottom), with a margin."""
    left, top, right, bottom = map(int, box)
    page.keep(name, (left - MARGIN, top - MARGIN, right + MARGIN, bottom + MARGIN))
    assert (page.screenshots / name).stat().st_size < 200_000


def user_graph():
    """A graph as a user has it, at as many tokens as Flux has at 1024 x 1024 pixels."""
    prompt = sample_with("TokenDownsample")
    prompt["1"] = {"class_type": "TokenMergeTrainedModel", "inputs": {"kind": "flux"}}
    prompt["2"]["inputs"]["text"] = "a penguin on a yellow background"
    prompt["3"]["inputs"].update(width=512, height=512)
    prompt["4"]["inputs"].update(steps=8, cfg=3.0, scheduler="simple", negative=["7", 0])
    prompt["7"] = {"class_type": "CLIPTextEncode", "inputs": {"clip": ["1", 1], "text": ""}}
    for key, title in TITLES.items():
        prompt[key]["_meta"] = {"title": title}
    return prompt


def test_the_graph_with_what_the_node_says(classic_page):
    page = classic_page
    page.load(Comfy_Locale="en", Comfy_NodeBadge_NodeSourceBadgeMode="None")
    page.open(user_graph())
    page.call(scripts.ARRANGE, PLACES, ORIGIN)
    page.run()
    assert "local windows" in page.text_on("11")
    box = page.call(scripts.ARRANGE, PLACES, ORIGIN)
    wait_for(lambda: page.browser.execute_script(scripts.PICTURE_IS_DRAWN, "6"))
    save(page, "graph.jpg", box)
