"""Bad input is refused when the graph is queued: no minutes of loading before the message."""

from __future__ import annotations

import pytest

from devtools.client import RunError
from devtools.graph import with_values

WORKFLOW = {"TokenMerge": "token_merge", "TokenDownsample": "token_downsample"}


@pytest.mark.parametrize(
    ("node", "values", "said"),
    [
        ("TokenMerge", {"ratio": 0.9}, ["ratio", "0.9", "0.75", "stride"]),
        ("TokenMerge", {"ratio": -0.1}, ["ratio", "-0.1", "0.0"]),
        ("TokenMerge", {"stride_x": 0}, ["stride_x", "0", "1"]),
        ("TokenMerge", {"stride_y": 0}, ["stride_y", "0", "1"]),
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
        ("TokenDownsample", {"factor_level_2": 9.0}, ["factor_level_2", "9.0", "8.0"]),
        ("TokenDownsample", {"method": "cubic"}, ["method", "cubic", "bicubic"]),
        ("TokenDownsample", {"model": ["7", 0]}, ["model", "MODEL", "LATENT"]),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_is_refused_by_name_value_and_range(node, values, said, client, small_prompt):
    prompt = with_values(small_prompt(WORKFLOW[node]), node, **values)
    with pytest.raises(RunError) as refusal:
        client.submit(prompt)
    assert [part for part in said if part not in str(refusal.value)] == [], str(refusal.value)
