"""What our nodes write on themselves is shown on them, in both looks of the nodes.

Which texts they write is in tests/server/test_texts.py.
"""

from __future__ import annotations

from support.page import graphs

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
