"""Our nodes inside a subgraph write on themselves while the page shows its inside."""

from __future__ import annotations

from support.page import graphs, scripts
from support.page.browser import wait_for


def test_each_node_inside_a_subgraph_shows_its_own_text(page):
    page.open(graphs.sample_with("TokenMergeAdvanced", "TokenDownsampleAdvanced"))
    page.set("11", end_percent=0.4)
    page.set("12", start_percent=0.4)
    page.call(scripts.MAKE_SUBGRAPH, ["11", "12"])
    told = page.run()
    assert {node.count(":") for node, _ in told} == {1}
    assert "attention computes 612 queries and reads 192 keys" in page.text_on("11")
    assert "attention reads 192 keys" in page.text_on("12")
    page.keep(f"subgraph-{page.look}.png")


def test_text_is_still_there_when_the_subgraph_is_opened_again(classic_page):
    page = classic_page
    page.open(graphs.sample_with("TokenDownsample"))
    page.call(scripts.MAKE_SUBGRAPH, ["11"])
    page.run()
    shown = page.text_on("11")
    page.call("window.inside = app.canvas.graph; app.canvas.setGraph(app.rootGraph)")
    wait_for(lambda: page.browser.execute_script("return app.canvas.graph === app.rootGraph"))
    page.call("app.canvas.setGraph(window.inside)")
    assert page.text_on("11") == shown
