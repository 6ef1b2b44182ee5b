"""A percent range that ends before it starts: one message about two inputs, and nothing else."""

from __future__ import annotations

from selenium.webdriver.common.by import By
from support.page import graphs
from support.page.browser import wait_for

RED = """
    return app.graph.nodes.filter((node) => node.has_errors).map((node) => [
        String(node.id), node.inputs.filter((input) => input.hasErrors).map(({name}) => name)]);
"""


def group_of(page) -> str:
    """The list of errors in the panel beside the graph."""
    groups = page.browser.find_elements(By.CSS_SELECTOR, "[data-testid^=error-group-]")
    return "\n".join(group.text for group in groups)


def test_a_wrong_range_is_told_on_its_two_inputs_alone_with_both_values(page):
    page.open(graphs.sample_with("TokenDownsampleAdvanced", start_percent=0.6, end_percent=0.4))
    page.press_run()
    overlay = wait_for(lambda: page.find("error-overlay"))[0]
    assert "Invalid input\n" in overlay.text
    wait_for(lambda: page.find("error-overlay-see-errors"))[0].click()
    group = wait_for(lambda: group_of(page))
    assert group.count("Token Downsample (Advanced) - ") == 2
    assert "Token Downsample (Advanced) - start_percent" in group
    assert "Token Downsample (Advanced) - end_percent" in group
    assert page.browser.execute_script(RED) == [["11", ["start_percent", "end_percent"]]]
    page.keep(f"wrong-range-{page.look}.png")
    label = "[aria-label='Info for Token Downsample (Advanced) - start_percent']"
    wait_for(lambda: page.browser.find_element(By.CSS_SELECTOR, label)).click()
    said = "no step lies in this range: start_percent is 0.6, expected less than end_percent"
    wait_for(lambda: said in group_of(page))
