"""Which widgets each of our nodes shows."""

from __future__ import annotations

import pytest
import requests

SIMPLE = {
    "TokenMerge": ["ratio", "exact_early_steps"],
    "TokenDownsample": ["factor", "local_window", "exact_early_steps"],
}


@pytest.mark.parametrize("kind", SIMPLE)
def test_a_simple_node_shows_its_few_widgets(page, kind):
    page.open({"1": {"class_type": kind, "inputs": {}}})
    assert page.widgets_of("1") == SIMPLE[kind]


@pytest.mark.parametrize("kind", ["TokenMergeAdvanced", "TokenDownsampleAdvanced"])
def test_an_advanced_node_shows_every_input(page, user_server, kind):
    reply = requests.get(f"{user_server.url}/object_info/{kind}", timeout=30).json()
    page.open({"1": {"class_type": kind, "inputs": {}}})
    assert ["model", *page.widgets_of("1")] == reply[kind]["input_order"]["required"]
    page.keep(f"widgets-{kind}-{page.look}.png")
