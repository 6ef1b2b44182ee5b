"""Every shipped workflow opens from the template browser and runs as it was opened."""

from __future__ import annotations

import pytest
import requests
from selenium.webdriver.common.by import By
from support.page.browser import wait_for

from devtools import graph

TITLES = sorted(path.stem for path in graph.WORKFLOWS.glob("*.json"))
SMALL = {
    "EmptyLatentImage": {"width": 256, "height": 192},
    "KSampler": {"steps": 2},
    "TokenReductionCompare": {"steps": 2},
}
KINDS = "return app.graph.nodes.map(({type}) => type)"
UNKNOWN = f"""
    const known = LiteGraph.registered_node_types;
    {KINDS}.filter((type) => !known[type]);
"""


def open_template(page, title: str) -> list[str]:
    """From the template browser; returns the kinds of its nodes."""
    page.call("app.graph.clear(); app.extensionManager.command.execute('Comfy.BrowseTemplates')")
    path = "//*[@role='dialog']//*[normalize-space(.)='token-merge']"
    ours = wait_for(lambda: page.browser.find_elements(By.XPATH, path))[-1]
    page.browser.execute_script("arguments[0].scrollIntoView()", ours)
    ours.click()
    wait_for(lambda: page.find(f"template-workflow-{title}"))[0].click()
    return wait_for(lambda: page.browser.execute_script(KINDS))


def run_with_demo_model(page) -> None:
    """As the page queues it, with another loader: what the server tells comes to this page."""
    prompt = graph.with_demo_model(page.call("return (await app.graphToPrompt()).output"))
    for kind, values in SMALL.items():
        prompt = graph.with_values(prompt, kind, **values)
    body = {"prompt": prompt, "client_id": page.call("return app.api.clientId")}
    address = f"{page.url}/prompt"
    told = page.wait_for_runs(
        lambda: requests.post(address, json=body, timeout=60).raise_for_status()
    )
    ours = {key for key, node in prompt.items() if node["class_type"] in graph.OURS}
    assert {node for node, _ in told} >= ours


@pytest.mark.parametrize("title", TITLES)
def test_a_template_opens_without_unknown_nodes_and_runs(classic_page, title):
    kinds = open_template(classic_page, title)
    assert any(kind.startswith("Token") for kind in kinds)
    assert classic_page.browser.execute_script(UNKNOWN) == []
    classic_page.keep(f"template-{title.replace(' ', '-')}.png")
    # The server has a model for what takes a checkpoint, none for a model in several files.
    if graph.LOADER in kinds:
        run_with_demo_model(classic_page)
