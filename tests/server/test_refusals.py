"""Bad input is refused when the graph is queued: no minutes of loading before the message."""

from __future__ import annotations

import pytest

from devtools.client import RunError
from devtools.graph import SD15, with_values


@pytest.mark.parametrize(
    ("node", "values", "said"),
    [
        ("TokenMerge", {"ratio": -0.1}, ["ratio", "-0.1", "0.0"]),
        (
            "TokenMerge",
            {"start_percent": 0.6, "end_percent": 0.4},
            ["start_percent", "0.6", "end_percent", "0.4"],
        ),
        (
            "TokenDownsample",
            {"start_percent": 0.5, "end_percent": 0.5},
            ["start_percent", "0.5", "end_percent"],
        ),
        ("TokenDownsample", {"factor": 0.5}, ["factor", "0.5", "1.0"]),
        ("TokenDownsample", {"local_window": "15"}, ["local_window", "15", "16"]),
        ("TokenDownsample", {"model": ["3", 0]}, ["model", "MODEL", "LATENT"]),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_is_refused_by_name_value_and_range(node, values, said, client, small_prompt):
    prompt = with_values(small_prompt(SD15, kinds=(node,)), node, **values)
    with pytest.raises(RunError) as refusal:
        client.submit(prompt)
    assert [part for part in said if part not in str(refusal.value)] == [], str(refusal.value)


def test_a_wrong_percent_window_is_one_error_on_its_two_inputs(client, small_prompt):
    values = {"start_percent": 0.6, "end_percent": 0.4}
    prompt = with_values(small_prompt(SD15, kinds=("TokenMerge",)), "TokenMerge", **values)
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
