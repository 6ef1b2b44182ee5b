"""Compare Token Reduction in the page, in both looks of the nodes."""

from __future__ import annotations

import re

from support.page import graphs
from support.page.browser import wait_for


def test_compare_shows_its_verdict_until_an_input_changes(page):
    prompt = graphs.sample_with("TokenDownsample")
    prompt["4"]["class_type"] = "TokenReductionCompare"
    prompt["4"]["inputs"] |= {"model": ["1", 0], "patched_model": ["11", 0]}
    page.open(prompt)
    page.run()
    assert page.count_lines_seen_on("4") >= 2
    verdict = " ".join(page.lines_on("4")[:2])
    assert re.match(r"\d+\.\d+x.+\(\d+\.\d+ to \d+\.\d+\), \d+\.\d dB", verdict)
    page.keep(f"compare-{page.look}.png")
    page.type_into("4", "steps", "3")
    wait_for(lambda: page.lines_on("4")[0].startswith("Earlier run: "))
