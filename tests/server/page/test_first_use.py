"""What a new user does with the mouse: finds the node, puts it between loader and sampler, runs."""

from __future__ import annotations

from selenium.webdriver.common.keys import Keys
from support.page import graphs, mouse, scripts
from support.page.browser import wait_for

PLACE = (700, 620)
ADDED = "return String(app.graph.nodes.find(({type}) => type === 'TokenDownsample')?.id ?? '')"
FOLLOWS = "return !!app.graph.nodes.find(({type}) => type === 'TokenDownsample')?.flags.ghost"
FED = "return app.graph.getNodeById(arguments[0]).getInputNode(0)?.type"


def link(page, source: tuple[str, str], target: tuple[str, str]) -> None:
    """Drag from an output (node, name) to an input."""
    (giver, output), (taker, name) = source, target
    start = page.browser.execute_script(scripts.SLOTS, giver)["outputs"][output]
    end = page.browser.execute_script(scripts.SLOTS, taker)["inputs"][name]
    mouse.drag(page.browser, start, end)


def first_result(page) -> str:
    return next((item.text for item in page.find("result-item")), "")


def test_the_node_is_found_placed_wired_and_tells_what_it_did(page):
    page.open(graphs.sample_with())
    page.browser.execute_script("app.canvas.ds.scale = 0.8; app.canvas.ds.offset = [250, 150]")
    field = page.open_search()
    field.send_keys("todo")
    wait_for(lambda: first_result(page).startswith("Token Downsample (ToDo)"))
    field.send_keys(Keys.ENTER)
    ours = wait_for(lambda: page.browser.execute_script(ADDED))
    # A new node follows the mouse until a click.
    mouse.click(page.browser, PLACE)
    wait_for(lambda: not page.browser.execute_script(FOLLOWS))
    link(page, ("1", "MODEL"), (ours, "model"))
    link(page, (ours, "MODEL"), ("4", "model"))
    assert page.browser.execute_script(FED, ours) == "TokenMergeDemoModel"
    assert page.browser.execute_script(FED, "4") == "TokenDownsample"
    page.run()
    page.keep(f"first-use-{page.look}.png")
    assert page.lines_on(ours)[:2] == ["Reads 25% of the pairs", "in 5 of 5 layers"]
