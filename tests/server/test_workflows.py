"""Every shipped workflow through the server to finished pictures, and what bypassing gives."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from devtools import graph
from devtools.graph import OURS

from .conftest import SMALL

IMAGES = {
    graph.SD15: [(128, 96)],
    graph.SDXL: [(128, 96)],
    graph.SECOND_PASS: [(256, 192)],
    graph.FLUX: [(64, 48)],
    graph.WAN: [(64, 48)] * 2,
    graph.COMPARE: [(128, 96)] * 2,
}
EVERY_FILE = pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.stem)
EVERY_EXAMPLE = pytest.mark.parametrize("path", graph.EXAMPLES, ids=lambda path: path.stem)


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
def test_runs_to_its_finished_pictures(path, client, small_prompt):
    prompt = small_prompt(path)
    assert any(node["class_type"] in OURS for node in prompt.values())
    images = client.run(prompt).images
    pictures = IMAGES[path]
    assert [image.size for image in images[: len(pictures)]] == pictures
    assert len(images) == len(pictures)
    for image in images:
        # Neither one colour nor clipped: what an overflow or a missing model would leave.
        assert np.asarray(image).std() > 10


def test_compare_shows_two_different_pictures(client, small_prompt):
    plain, patched = client.run(small_prompt(graph.COMPARE)).images
    assert not same(plain, patched)


def test_wan_runs_to_its_video(client, server, object_info):
    prompt = graph.to_prompt(graph.load(graph.WAN), object_info)
    prompt = graph.with_trained_model(prompt, "a red star on a green gradient")
    for kind, values in SMALL.items():
        prompt = graph.with_values(prompt, kind, **values)
    client.run(prompt)
    assert list((server.base / "output" / "video").glob("*.mp4"))


@EVERY_EXAMPLE
def test_the_same_graph_and_seed_give_the_same_picture(path, client, small_prompt):
    first, second = client.run(small_prompt(path)), client.run(small_prompt(path))
    assert second.step_seconds, "the second run was not sampled but taken from the cache"
    assert all_same(first.images, second.images)


@EVERY_EXAMPLE
def test_bypassing_our_node_is_the_plain_graph_bit_for_bit(path, client, small_prompt):
    ours = client.run(small_prompt(path)).images
    bypassed = client.run(small_prompt(path, kinds=())).images
    plain = client.run(without_ours(small_prompt(path))).images
    assert all_same(bypassed, plain)
    assert not all_same(ours, plain)


def test_token_merge_can_take_the_place_of_token_downsample(client, small_prompt):
    downsampled, merged = (
        client.run(small_prompt(graph.SD15, kinds=(kind,))).images[0]
        for kind in ("TokenDownsample", "TokenMerge")
    )
    assert not same(downsampled, merged)
