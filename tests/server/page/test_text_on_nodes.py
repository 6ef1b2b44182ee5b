"""After a run each of our nodes says on itself what it did, in both looks of the nodes."""

from __future__ import annotations

import re

from support.page import graphs

DOWNSAMPLED = r"5 layers: 768 tokens, attention reads 192 keys; \d+\.\d\d s per step"


def test_a_new_node_shows_what_it_did_and_how_long_a_step_took(page):
    page.open(graphs.sample_with("TokenDownsample"))
    page.run()
    assert re.fullmatch(DOWNSAMPLED, page.text_on("11"))
    assert page.shows_all_text_of("11")
    page.keep(f"text-{page.look}.png")


def test_text_is_told_anew_where_our_node_is_not_run_again(page):
    page.open(graphs.sample_with("TokenDownsample"))
    for seed in (1001, 1002):
        page.set("4", seed=seed)
        told = page.run()
    assert "11" in page.browser.execute_script("return cached.at(-1)")
    node, text = told[-1]
    assert node == "11"
    assert page.text_on("11") == text


def test_each_node_of_a_chain_shows_its_own_text(page):
    page.open(graphs.sample_with("TokenMerge", "TokenDownsample"))
    page.set("11", end_percent=0.4)
    page.set("12", start_percent=0.4)
    page.run()
    assert "attention computes 612 queries and reads 192 keys; " in page.text_on("11")
    assert "attention reads 192 keys; " in page.text_on("12")
    page.keep(f"chain-{page.look}.png")


def test_two_nodes_with_the_same_inputs_each_show_their_text(page):
    page.open(graphs.sample_twice())
    page.run()
    assert re.fullmatch(DOWNSAMPLED, page.text_on("11"))
    assert re.fullmatch(DOWNSAMPLED, page.text_on("12"))


def test_each_prompt_of_a_batch_writes_its_text(page):
    page.open(graphs.sample_with("TokenDownsample"))
    page.set("4", seed=2000, control_after_generate="increment")
    told = page.wait_for_runs(lambda: page.call("await app.queuePrompt(0, 2)"), prompts=2)
    ends = [text for node, text in told if re.fullmatch(DOWNSAMPLED, text)]
    assert len(ends) == 2
    assert page.text_on("11") == ends[-1]


def test_lines_are_lines_in_both_looks(page):
    page.open(graphs.sample_with("TokenMerge", ratio=0.9))
    page.run()
    lines = page.lines_on("11")
    assert lines[0].startswith("ratio 0.9 acts as 0.75")
    assert lines[-1].endswith(" s per step")
    assert max(map(len, lines)) <= 36


def test_a_model_that_passes_through_is_told(page):
    page.open(graphs.apply_to_unreached_model())
    page.run()
    assert "passes through unchanged: its attention cannot be reached" in page.text_on("11")
    page.keep(f"left-alone-{page.look}.png")
