"""After a prompt each of our nodes says what it did, on itself and in the console."""

from __future__ import annotations

import pytest
from support.page.graphs import apply_to_unreached_model
from support.prompts import make_prompt

from devtools.client import Client
from devtools.graph import OURS

MERGED = "5 layers: 256 tokens, attention computes 204 queries and reads 64 keys"
DOWNSAMPLED = "5 layers: 256 tokens, attention reads 64 keys"
VERDICT = {MERGED: "Reads 20% of the pairs", DOWNSAMPLED: "Reads 25% of the pairs"}


def write(*details):
    """What stands on a node, in one line."""
    return " ".join([f"{VERDICT[details[0]]} in 5 of 5 layers", *details])


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        ("TokenMerge", "Token Merge", MERGED),
        ("TokenDownsample", "Token Downsample", DOWNSAMPLED),
        ("TokenMergeAdvanced", "Token Merge", MERGED),
        ("TokenDownsampleAdvanced", "Token Downsample", DOWNSAMPLED),
    ],
    ids=OURS,
)
def test_a_node_says_what_it_did(kind, name, text, client, server):
    start = len(server.log.read_text())
    assert client.run(make_prompt(kind)).written == {"5": write(text)}
    assert server.log.read_text()[start:].count(f"{name}: {text}.\n") == 1


def test_each_node_of_a_chain_says_what_it_did_itself(client):
    prompt = make_prompt("TokenMergeAdvanced", steps=2, end_percent=0.4)
    prompt["8"] = make_prompt("TokenDownsampleAdvanced", start_percent=0.4)["5"]
    prompt["8"]["inputs"]["model"] = ["5", 0]
    prompt["6"]["inputs"]["model"] = ["8", 0]
    assert client.run(prompt).written == {
        "5": write(MERGED, "acts from 0% to 40% of the schedule"),
        "8": write(DOWNSAMPLED, "acts from 40% to 100% of the schedule"),
    }


def test_two_nodes_with_the_same_inputs_each_say_it(client):
    prompt = make_prompt("TokenDownsample")
    prompt["8"] = prompt["5"]
    for source, copy, name in (("6", "16", "model"), ("7", "17", "samples")):
        link = ["8" if name == "model" else "16", 0]
        prompt[copy] = {**prompt[source], "inputs": {**prompt[source]["inputs"], name: link}}
    assert client.run(prompt).written == dict.fromkeys("58", write(DOWNSAMPLED))


@pytest.mark.thorough
def test_two_comparisons_with_the_same_inputs_each_say_it(user_server):
    client = Client(user_server)
    prompt = make_prompt("TokenDownsample", steps=2)
    models = {"model": ["1", 0], "patched_model": ["5", 0]}
    inputs = {**prompt.pop("6")["inputs"], **models}
    del prompt["7"]
    for node in ("8", "9"):
        prompt[node] = {"class_type": "TokenReductionCompare", "inputs": inputs}
    assert sorted(client.run(prompt).written) == ["5", "8", "9"]
    client.close()


def test_each_queued_prompt_says_it(client):
    queued = [client.submit(make_prompt("TokenDownsample", seed=seed)) for seed in (1, 2)]
    assert [client.finish(each).written for each in queued] == [{"5": write(DOWNSAMPLED)}] * 2


def test_only_who_queued_a_prompt_is_told(client, server):
    """On the page of another user, or in another tab, the node with this id is another one."""
    other = Client(server)
    assert client.run(make_prompt("TokenDownsample")).written == {"5": write(DOWNSAMPLED)}
    assert other.run(make_prompt(None)).written == {}
    other.close()


def test_a_model_that_passes_through_is_told(client):
    (text,) = client.run(apply_to_unreached_model()).written.values()
    assert "is not supported: nothing is changed. See Node Info for the list. Why: its" in text
