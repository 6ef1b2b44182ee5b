"""Bad input is refused when the graph is queued: no minutes of loading before the message."""

from __future__ import annotations

import pytest
from support.prompts import make_prompt

from devtools.client import RunError
from devtools.graph import SD15, with_values


@pytest.mark.parametrize(
    ("node", "values", "said"),
    [
        ("TokenMerge", {"ratio": -0.1}, ["ratio", "-0.1", "0.0"]),
        (
            "TokenMergeAdvanced",
            {"start_percent": 0.6, "end_percent": 0.4},
            ["start_percent", "0.6", "end_percent", "0.4"],
        ),
        (
            "TokenDownsampleAdvanced",
            {"start_percent": 0.5, "end_percent": 0.5},
            ["start_percent", "0.5", "end_percent"],
        ),
        ("TokenDownsample", {"factor": 0.5}, ["factor", "0.5", "1.0"]),
        ("TokenDownsample", {"local_window": "15"}, ["local_window", "15", "16"]),
        ("TokenDownsample", {"model": ["4", 0]}, ["model", "MODEL", "LATENT"]),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_is_refused_by_name_value_and_range(node, values, said, client):
    prompt = with_values(make_prompt(node), node, **values)
    with pytest.raises(RunError) as refusal:
        client.submit(prompt)
    assert [part for part in said if part not in str(refusal.value)] == [], str(refusal.value)


def test_a_wrong_percent_window_is_one_error_on_its_two_inputs(client):
    prompt = make_prompt("TokenMergeAdvanced", start_percent=0.6, end_percent=0.4)
    with pytest.raises(RunError) as refusal:
        client.submit(prompt)
    assert str(refusal.value).count("start_percent is 0.6, expected less than") == 2


@pytest.mark.parametrize("node", ["TokenMerge", "TokenDownsample"])
def test_a_link_to_an_input_that_the_node_lacks_is_refused_by_name(node, client, small_prompt):
    prompt = small_prompt(SD15, kinds=(node,))
    model = next(each for each in prompt.values() if each["class_type"] == node)["inputs"]["model"]
    identity = client.submit(with_values(prompt, node, no_such_input=model))
    said = "no_such_input is no input of this node, expected only model, "
    with pytest.raises(RunError, match=said):
        client.finish(identity)
