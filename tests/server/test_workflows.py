"""Every shipped workflow through the server to finished pictures, and what bypassing gives."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from devtools import graph
from devtools.graph import OURS

PICTURES = {"token_merge": 1, "token_downsample": 1, "compare": 2}
TABLES = {"compare": 1}
"""Pictures of text, behind the others."""


def same(left, right) -> bool:
    return np.array_equal(np.asarray(left), np.asarray(right))


def without_ours(prompt):
    """Our nodes taken out by hand: whoever used their output uses their input."""
    prompt = copy.deepcopy(prompt)
    ours = [key for key, node in prompt.items() if node["class_type"] in OURS]
    sources = {key: prompt.pop(key)["inputs"]["model"] for key in ours}
    for node in prompt.values():
        for name, value in node["inputs"].items():
            if isinstance(value, list) and value[0] in sources:
                node["inputs"][name] = sources[value[0]]
    return prompt


def test_no_workflow_is_left_out_here():
    assert {path.stem for path in graph.WORKFLOWS.glob("*.json")} == set(PICTURES)


@pytest.mark.parametrize("name", PICTURES)
def test_runs_to_its_finished_pictures(name, client, small_prompt):
    prompt = small_prompt(name)
    assert any(node["class_type"] in OURS for node in prompt.values())
    images = client.run(prompt).images
    assert len(images) == PICTURES[name] + TABLES.get(name, 0)
    assert {image.size for image in images[: PICTURES[name]]} == {(256, 192)}
    for image in images:
        # Neither one colour nor clipped: what an overflow or a missing model would leave.
        assert np.asarray(image).std() > 10


def test_compare_shows_two_different_pictures_and_the_table(client, small_prompt):
    plain, patched, table = client.run(small_prompt("compare")).images
    assert not same(plain, patched)
    assert table.width == 1024


@pytest.mark.parametrize("name", ["token_merge", "token_downsample"])
def test_the_same_graph_and_seed_give_the_same_picture(name, client, small_prompt):
    first, second = client.run(small_prompt(name)), client.run(small_prompt(name))
    assert second.step_seconds, "the second run was not sampled but taken from the cache"
    assert same(first.images[0], second.images[0])


@pytest.mark.parametrize("name", ["token_merge", "token_downsample"])
def test_bypassing_our_node_is_the_plain_graph_bit_for_bit(name, client, small_prompt):
    ours = client.run(small_prompt(name)).images[0]
    bypassed = client.run(small_prompt(name, bypassed=True)).images[0]
    plain = client.run(without_ours(small_prompt(name))).images[0]
    assert same(bypassed, plain)
    assert not same(ours, plain)
