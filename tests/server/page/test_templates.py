"""Every shipped workflow is in the template browser, and opens from there as it is in its file.

What opened is then what test_workflows.py runs.
"""

from __future__ import annotations

from typing import Any

import pytest
import requests
from selenium.webdriver.common.by import By
from support.page import scripts
from support.page.browser import wait_for

from devtools import graph
from devtools.client import Prompt

TITLES = sorted(path.stem for path in graph.WORKFLOWS.glob("*.json"))


@pytest.fixture(scope="module")
def object_info(user_server) -> dict[str, Any]:
    return requests.get(f"{user_server.url}/object_info", timeout=60).json()


def browse(page) -> None:
    """Show our workflows in the template browser."""
    page.call("app.graph.clear(); app.extensionManager.command.execute('Comfy.BrowseTemplates')")
    path = "//*[@role='dialog']//*[normalize-space(.)='token-merge']"
    ours = wait_for(lambda: page.browser.find_elements(By.XPATH, path))[-1]
    page.browser.execute_script("arguments[0].scrollIntoView()", ours)
    ours.click()
    wait_for(lambda: f"Showing {len(TITLES)} of {len(TITLES)}" in dialog_text(page))


def dialog_text(page) -> str:
    dialogs = page.browser.find_elements(By.CSS_SELECTOR, "[role=dialog]")
    return "\n".join(dialog.text for dialog in dialogs)


def read(prompt: Prompt, object_info: dict[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Class and inputs of each node, without the widget that shows pictures and holds nothing, and
    without inputs that the page itself hides.
    """
    return {
        key: (
            node["class_type"],
            {
                name: value
                for name, value in node["inputs"].items()
                if name != "compare_view"
                and not is_hidden(object_info[node["class_type"]]["input"], name)
            },
        )
        for key, node in prompt.items()
    }


def is_hidden(inputs: dict[str, Any], name: str) -> bool:
    """Whether an optional input has a place in no node, as SaveVideo's former codec."""
    given = inputs.get("optional", {}).get(name, [])
    return any(isinstance(each, dict) and each.get("hidden", False) for each in given)


def width_of_picture(card) -> int:
    """Pixels of the file that the card shows; its element comes when the file is asked for."""
    return card.find_element(By.TAG_NAME, "img").get_property("naturalWidth")


def test_template_browser_lists_our_workflows_with_their_pictures(classic_page):
    browse(classic_page)
    for title in TITLES:
        (card,) = wait_for(lambda title=title: classic_page.find(f"template-workflow-{title}"))
        assert title in card.text.replace("\n", " ")
        # A card draws its picture only once it was scrolled into sight, and after a while.
        classic_page.browser.execute_script("arguments[0].scrollIntoView()", card)
        wait_for(lambda card=card: width_of_picture(card) >= 256)
    classic_page.keep("templates.png")


@pytest.mark.parametrize("title", TITLES)
def test_a_template_opens_in_order_and_as_it_is_in_its_file(classic_page, title, object_info):
    browse(classic_page)
    wait_for(lambda: classic_page.find(f"template-workflow-{title}"))[0].click()
    opened = wait_for(lambda: classic_page.browser.execute_script(scripts.OPENED))
    classic_page.keep(f"template-{title.replace(' ', '-')}.png")
    assert opened["unknown"] == []
    # What the page makes larger than the file says must not lie on its neighbour.
    for number, (left, top, right, bottom) in enumerate(opened["boxes"]):
        for left2, top2, right2, bottom2 in opened["boxes"][:number]:
            assert right <= left2 or right2 <= left or bottom <= top2 or bottom2 <= top
    prompt = classic_page.call("return (await app.graphToPrompt()).output")
    workflow = graph.load(graph.WORKFLOWS / f"{title}.json")
    expected = graph.to_prompt(workflow, object_info)
    assert read(prompt, object_info) == read(expected, object_info)
