"""ComfyUI's page in a real browser: the nodes are found, the workflows open, the help is there."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from devtools import graph
from devtools.client import Prompt

TITLES = sorted(path.stem for path in graph.WORKFLOWS.glob("*.json"))
BLUEPRINT = "Load Checkpoint with Token Downsample"
CHECKPOINT = "v1-5-pruned-emaonly-fp16.safetensors"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
WAIT_SECONDS = 60

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no chromium with chromedriver on this machine"
)

# Last of all the page opens a workflow of its own, which would replace one opened before.
READY = """
    return !!(window.LiteGraph?.registered_node_types?.TokenMerge
        && window.app?.extensionManager?.workflow?.activeWorkflow);
"""
SETTINGS = {"Comfy.TutorialCompleted": True, "Comfy.Workflow.Persist": False}
OPEN = """
    const [workflow, done] = arguments;
    (async () => {
        await app.loadGraphData(workflow);
        const registered = LiteGraph.registered_node_types;
        return {
            missing: app.graph._nodes.map((node) => node.type).filter((type) => !registered[type]),
            prompt: (await app.graphToPrompt()).output,
        };
    })().then(done, (error) => done({error: String(error)}));
"""
BOXES = """
    return app.graph._nodes.map(({boundingRect: [left, top, width, height]}) =>
        [left, top, left + width, top + height]);
"""
QUEUED = """
    const [done] = arguments;
    app.graphToPrompt().then(({output}) => done(Object.values(output)));
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    # Without a sandbox: Chromium refuses to start one for root, which is who runs in a container.
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    options.add_argument("--window-size=1400,1000")
    browser = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    browser.set_script_timeout(WAIT_SECONDS)
    yield browser
    browser.quit()


def wait_for(find: Callable[[], Any]) -> Any:
    """What ``find`` returns, once that is true."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            found = find()
        except WebDriverException:  # an element that is just being drawn anew
            found = None
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"the page did not show it within {WAIT_SECONDS} s")
        time.sleep(0.2)


@pytest.fixture
def page(browser, server) -> webdriver.Chrome:
    """The page past what it shows to a new user, and without the graph of the test before."""
    requests.post(f"{server.url}/api/settings", json=SETTINGS, timeout=30).raise_for_status()
    browser.get(server.url)
    wait_for(lambda: browser.execute_script(READY))
    return browser


def in_dialog(page: webdriver.Chrome, text: str) -> list[WebElement]:
    """The elements of the open dialog with just this text, the innermost last."""
    return page.find_elements(By.XPATH, f"//*[@role='dialog']//*[normalize-space(.)='{text}']")


def dialog_text(page: webdriver.Chrome) -> str:
    dialogs = page.find_elements(By.CSS_SELECTOR, "[role=dialog]")
    return "\n".join(dialog.text for dialog in dialogs)


def open_our_templates(page: webdriver.Chrome) -> None:
    page.execute_script("app.extensionManager.command.execute('Comfy.BrowseTemplates')")
    ours = wait_for(lambda: in_dialog(page, "token-merge"))[-1]
    page.execute_script("arguments[0].scrollIntoView()", ours)
    ours.click()
    wait_for(lambda: f"Showing {len(TITLES)} of {len(TITLES)}" in dialog_text(page))


def find_card(page: webdriver.Chrome, title: str) -> WebElement:
    return page.find_element(By.CSS_SELECTOR, f'[data-testid="template-workflow-{title}"]')


def test_template_browser_lists_our_workflows(page):
    open_our_templates(page)
    for title in TITLES:
        card = find_card(page, title)
        assert title in card.text.replace("\n", " ")
        picture = card.find_element(By.TAG_NAME, "img")
        wait_for(lambda picture=picture: picture.get_property("naturalWidth") >= 256)


@pytest.mark.parametrize("path", graph.EXAMPLES, ids=lambda path: path.stem)
def test_an_example_opens_from_the_template_browser(page, path):
    open_our_templates(page)
    find_card(page, path.stem).click()
    types = "return app.graph._nodes.map((node) => node.type)"
    wait_for(lambda: "TokenDownsample" in page.execute_script(types))
    # What the page makes larger than the file says must not lie on its neighbour.
    boxes = page.execute_script(BOXES)
    for number, (left, top, right, bottom) in enumerate(boxes):
        for left2, top2, right2, bottom2 in boxes[:number]:
            assert right <= left2 or right2 <= left or bottom <= top2 or bottom2 <= top


def search(page: webdriver.Chrome, text: str) -> None:
    """Open the search of nodes and type; it shows what it finds."""
    canvas = page.find_element(By.CSS_SELECTOR, "canvas")
    ActionChains(page).move_to_element_with_offset(canvas, 0, 100).double_click().perform()
    wait_for(lambda: page.switch_to.active_element.tag_name == "input")
    ActionChains(page).send_keys(text).perform()


@pytest.mark.parametrize(
    "name", ["Token Merge (ToMe)", "Token Downsample (ToDo)", "Compare Token Reduction"]
)
def test_node_search_finds_our_node(page, name):
    search(page, name)
    wait_for(lambda: in_dialog(page, name))


def read(prompt: Prompt) -> dict[str, tuple[str, dict[str, Any]]]:
    """Class and inputs of each node, without the widget that shows pictures and holds nothing."""
    return {
        key: (
            node["class_type"],
            {name: value for name, value in node["inputs"].items() if name != "compare_view"},
        )
        for key, node in prompt.items()
    }


def test_the_blueprint_is_a_loader_with_token_downsample(page):
    page.execute_script("app.graph.clear()")
    search(page, BLUEPRINT)
    wait_for(lambda: in_dialog(page, BLUEPRINT))
    ActionChains(page).send_keys(Keys.ENTER).perform()
    node = "return app.graph._nodes[0]?.widgets?.map(({name, value}) => [name, value])"
    widgets = dict(wait_for(lambda: page.execute_script(node)))
    ours = {"factor": 2, "local_window": "auto", "start_percent": 0, "end_percent": 1}
    assert widgets == {"ckpt_name": CHECKPOINT, **ours}
    loader, patch = page.execute_async_script(QUEUED)
    assert (loader["class_type"], patch["class_type"]) == (graph.LOADER, "TokenDownsample")
    assert {name: patch["inputs"][name] for name in ours} == ours


@pytest.mark.parametrize("title", TITLES)
def test_page_and_command_line_read_the_workflow_alike(page, title, object_info):
    workflow = graph.load(graph.WORKFLOWS / f"{title}.json")
    opened: dict[str, Any] = page.execute_async_script(OPEN, workflow)
    assert opened.get("error") is None
    assert opened["missing"] == []
    expected = graph.to_prompt(workflow, object_info)
    assert read(opened["prompt"]) == read(expected)


@pytest.mark.parametrize("node", ["TokenMerge", "TokenDownsample", "TokenReductionCompare"])
def test_help_page_is_served(server, node):
    reply = requests.get(f"{server.url}/extensions/token-merge/docs/{node}.md", timeout=30)
    assert reply.ok
    assert len(reply.text) > 300
