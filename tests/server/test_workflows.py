"""Every shipped workflow through the server to finished pictures, and what bypassing gives."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from devtools import graph
from devtools.graph import OURS

from .conftest import SMALL

IMAGES = {
    graph.SD15: [(128, 96)],
    graph.SECOND_PASS: [(256, 192)],
    graph.FLUX: [(256, 192)],
    graph.Z_IMAGE: [(256, 192)],
    graph.WAN: [(64, 48)] * 2,
    graph.LTX: [(128, 96)] * 2,
    graph.COMPARE: [(128, 96)] * 2,
}
EVERY_FILE = pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.stem)
EVERY_EXAMPLE = pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[] if path == graph.SD15 else pytest.mark.thorough)
        for path in graph.EXAMPLES
    ],
    ids=lambda path: path.stem,
)


@pytest.fixture(scope="module")
def pictures(client, small_prompt) -> Callable[[Path], list[Image.Image]]:
    """The finished pictures of a shipped workflow, which is run at the first request."""
    return cache(lambda path: client.run(small_prompt(path)).images)


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


def all_same(left, right) -> bool:
    return all(same(*pair) for pair in zip(left, right, strict=True))


def test_no_workflow_is_left_out_here():
    assert set(graph.WORKFLOWS.glob("*.json")) == set(IMAGES)


@EVERY_FILE
def test_runs_to_its_finished_pictures(path, pictures):
    images = pictures(path)
    assert [image.size for image in images] == IMAGES[path]
    for image in images:
        # Neither one colour nor clipped: what an overflow or a missing model would leave.
        assert np.asarray(image).std() > 10


def test_compare_shows_two_different_pictures(pictures):
    unpatched, patched = pictures(graph.COMPARE)
    assert not same(unpatched, patched)


@pytest.mark.thorough
def test_wan_runs_to_its_video(client, server, object_info):
    prompt = graph.to_prompt(graph.load(graph.WAN), object_info)
    prompt = graph.with_trained_model(prompt, "a red star on a green gradient")
    for kind, values in SMALL.items():
        prompt = graph.with_values(prompt, kind, **values)
    client.run(prompt)
    assert list((server.base / "output" / "video").glob("*.mp4"))


@EVERY_EXAMPLE
def test_the_same_graph_and_seed_give_the_same_picture(path, client, small_prompt, pictures):
    prompt = small_prompt(path)
    first, second = pictures(path), client.run(prompt)
    samplers = {key for key, node in prompt.items() if node["class_type"] in graph.SAMPLERS}
    assert samplers <= second.seconds.keys(), "the second run was not sampled"
    assert all_same(first, second.images)


@pytest.mark.parametrize("path", graph.EXAMPLES, ids=lambda path: path.stem)
def test_a_bypassed_node_is_no_part_of_the_graph(path, small_prompt):
    prompt = small_prompt(path)
    assert any(node["class_type"] in OURS for node in prompt.values())
    assert small_prompt(path, kinds=()) == without_ours(prompt)


@EVERY_EXAMPLE
def test_our_node_changes_the_picture(path, client, small_prompt, pictures):
    bypassed = client.run(small_prompt(path, kinds=())).images
    assert not all_same(pictures(path), bypassed)


def test_token_merge_can_take_the_place_of_token_downsample(client, small_prompt, pictures):
    merged = client.run(small_prompt(graph.SD15, kinds=("TokenMerge",))).images
    assert not all_same(pictures(graph.SD15), merged)
