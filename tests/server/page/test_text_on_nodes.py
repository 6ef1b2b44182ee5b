"""What our nodes write on themselves is shown on them, in both looks of the nodes.

Which texts they write is in tests/server/test_texts.py.
"""

from __future__ import annotations

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from support.page import graphs, scripts
from support.page.browser import wait_for

VERDICT = ["Reads 25% of the pairs", "in 5 of 5 layers"]
DETAILS = "5 layers: 768 tokens, attention reads 192 keys"


def test_a_new_node_shows_what_it_did(page):
    page.open(graphs.sample_with("TokenDownsample"))
    page.run()
    assert page.text_on("11") == " ".join([*VERDICT, DETAILS])
    assert page.lines_on("11")[:2] == VERDICT
    assert page.count_lines_seen_on("11") >= 2
    page.keep(f"text-{page.look}.png")


def test_text_is_shown_anew_where_our_node_is_not_run_again(classic_page):
    classic_page.open(graphs.sample_with("TokenDownsample"))
    for seed in (1001, 1002):
        classic_page.set("4", seed=seed)
        told = classic_page.run()
    assert "11" in classic_page.browser.execute_script("return cached.at(-1)")
    node, text = told[-1]
    assert node == "11"
    assert classic_page.text_on("11") == text


def test_lines_are_lines_in_both_looks(page):
    page.open(graphs.sample_with("TokenMerge", ratio=0.9))
    page.run()
    lines = page.lines_on("11")
    assert lines[2].startswith("ratio 0.9 acts as 0.75")
    assert lines[-1].endswith("keys")
    assert max(map(len, lines)) <= 36


def test_a_text_that_no_run_makes_old_is_not_marked(page):
    page.open(graphs.sample_with("TokenDownsample", factor=1))
    for _ in range(2):
        page.set("4", seed=next(graphs.SEEDS))
        page.run()
        assert page.lines_on("11")[0].startswith("Changes nothing")
    page.type_into("11", "factor", "2")
    wait_for(lambda: page.lines_on("11")[0].startswith("Earlier run: Changes nothing"))


def bypass(page) -> None:
    page.browser.execute_script(scripts.SELECT, "11")
    ActionChains(page.browser).key_down(Keys.CONTROL).send_keys("b").key_up(Keys.CONTROL).perform()


@pytest.fixture
def page_with_text(page):
    page.open(graphs.sample_with("TokenDownsample"))
    page.run()
    assert page.lines_on("11")[0] == VERDICT[0]
    return page


def wait_until_earlier(page) -> None:
    wait_for(lambda: page.lines_on("11")[0] == f"Earlier run: {VERDICT[0]}")


def test_text_is_marked_as_earlier_when_an_input_changes(page_with_text):
    page_with_text.type_into("11", "factor", "3")
    wait_until_earlier(page_with_text)
    page_with_text.keep(f"earlier-{page_with_text.look}.png")


def test_text_is_marked_as_earlier_when_the_node_is_bypassed(page_with_text):
    bypass(page_with_text)
    wait_until_earlier(page_with_text)


def test_text_is_marked_as_earlier_where_a_prompt_is_refused(page_with_text):
    page_with_text.set("4", steps=0)
    page_with_text.press_run()
    wait_until_earlier(page_with_text)


def test_a_run_that_fails_at_once_leaves_the_earlier_text_marked(classic_page):
    """The text is taken away when the run ends, as pages since 1.54 do."""
    classic_page.open(graphs.sample_with("TokenDownsample"))
    classic_page.run()
    classic_page.browser.execute_script(scripts.FAIL_AT_ONCE, "11")
    wait_until_earlier(classic_page)


def test_the_text_of_a_new_run_is_not_marked(page_with_text):
    page_with_text.set("4", seed=next(graphs.SEEDS))
    page_with_text.run()
    assert page_with_text.lines_on("11")[:2] == VERDICT


def test_a_workflow_that_is_opened_meanwhile_does_not_show_the_text_on_another_node(page):
    other = graphs.sample_with("TokenDownsample")
    other["4"]["inputs"]["model"] = ["1", 0]
    other["11"] = {"class_type": "EmptyLatentImage", "inputs": other["3"]["inputs"]}
    page.open(graphs.sample_with("TokenDownsample"))
    page.set("4", steps=20)

    def run_and_open_another() -> None:
        told = page.browser.execute_script("return told.length")
        page.press_run()
        wait_for(lambda: page.browser.execute_script("return told.length") > told)
        page.open(other)

    page.wait_for_runs(run_and_open_another)
    assert page.browser.execute_script(scripts.KINDS_WITH_TEXT) == []


def test_a_page_that_takes_long_to_load_has_no_errors_of_ours(classic_page):
    browser = classic_page.browser
    script = {"source": scripts.REPEAT_AT_ONCE}
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", script)
    try:
        classic_page.load()
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
    assert browser.execute_script("return failed") == []
