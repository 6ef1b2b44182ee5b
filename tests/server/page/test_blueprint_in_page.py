"""Our blueprint, found by the search and added to the graph."""

from __future__ import annotations

from selenium.webdriver.common.keys import Keys
from support.page.browser import wait_for

from devtools import graph

BLUEPRINT = "Load Checkpoint with Token Downsample"
CHECKPOINT = "v1-5-pruned-emaonly-fp16.safetensors"
WIDGETS = "return app.graph.nodes[0]?.widgets?.map(({name, value}) => [name, value])"


def test_the_blueprint_is_a_loader_with_token_downsample(classic_page):
    classic_page.open({})
    field = classic_page.open_search()
    field.send_keys(BLUEPRINT)
    wait_for(lambda: classic_page.find("result-item")[0].text.startswith(BLUEPRINT))
    field.send_keys(Keys.ENTER)
    widgets = dict(wait_for(lambda: classic_page.browser.execute_script(WIDGETS)))
    ours = {"factor": 2, "local_window": "auto", "exact_early_steps": True}
    assert widgets == {"ckpt_name": CHECKPOINT, **ours}
    prompt = classic_page.call("return (await app.graphToPrompt()).output")
    loader, patch = prompt.values()
    assert (loader["class_type"], patch["class_type"]) == (graph.LOADER, "TokenDownsample")
    assert {name: patch["inputs"][name] for name in ours} == ours
