"""Any prompt to a real server: a finished run, or one clear refusal."""

from __future__ import annotations

import re

import hypothesis.strategies as st
import pytest
from hypothesis import given
from support.fuzzing import SOAK, attempt, fuzzed
from support.node_cases import RARELY, valid_values
from support.prompts import WIDGETS, make_prompt

from devtools.client import RunError
from devtools.graph import OURS

WRONG = st.sampled_from(
    [
        *(None, "", "abc", "0.5", "NaN", True, -1, -0.001, 9, 0.951, 1e308, 10**30),
        *(float("nan"), float("inf"), [], ["1"], ["1", 0], ["1", 9], ["no such node", 0]),
        *({}, {"a": 1}, {"__value__": [0.5]}, [1, 2, 3], [["1", 0]], "no choice", "16", "8"),
    ]
)
PRIMITIVES = {
    "FLOAT": "PrimitiveFloat",
    "INT": "PrimitiveInt",
    "BOOLEAN": "PrimitiveBoolean",
    "STRING": "PrimitiveString",
}
CLEAR = re.compile(rf"^({'|'.join(OURS)}) \(node 5\): .*(is .*, expected|already reduces)", re.S)
VALIDATION = (
    *("Required input is missing", "Bad linked input", "Return type mismatch"),
    *("Failed to convert an input value", "smaller than min", "bigger than max"),
    *("Value not in list", "Custom validation failed", "Exception when validating inner node"),
)
"""ComfyUI begins so what it says of a value before the graph runs."""


@st.composite
def prompts(draw):
    """Some inputs by value, by link, wrong or missing; the others as they are.

    Unchanged they run, as test_texts.py has it.
    """
    kind = draw(st.sampled_from(OURS))
    prompt = make_prompt(kind)
    inputs = prompt["5"]["inputs"]
    names = draw(st.lists(st.sampled_from([*WIDGETS[kind]]), min_size=1, max_size=4, unique=True))
    for name in names:
        widget = WIDGETS[kind][name]
        value = draw(valid_values(widget))
        how = draw(st.sampled_from(["value", "value", "link", "link", "wrong", "wrong link"]))
        if how == "wrong":
            inputs[name] = draw(WRONG)
        elif how == "value":
            inputs[name] = value
        else:
            own = PRIMITIVES.get(widget.io_type, "PrimitiveString")
            primitive = own if how == "link" else draw(st.sampled_from([*PRIMITIVES.values()]))
            if primitive != own:
                value = {"PrimitiveString": "0.5", "PrimitiveBoolean": True}.get(primitive, 3)
            number = str(20 + len(prompt))
            prompt[number] = {"class_type": primitive, "inputs": {"value": value}}
            inputs[name] = [number, 0]
    if draw(RARELY):
        del inputs[draw(st.sampled_from([*inputs]))]
    if draw(RARELY):
        inputs["model"] = draw(st.one_of(WRONG, st.sampled_from([["2", 0], ["4", 0]])))
    if draw(RARELY):
        inputs["no_such_input"] = draw(WRONG)
    return prompt


@pytest.mark.thorough
@fuzzed(short=12, share=1.0)
@given(prompts())
def test_a_prompt_is_run_or_refused_clearly(client, prompt):
    identity, refusal = attempt(client.submit, prompt)
    if refusal:
        assert isinstance(refusal, RunError)
        assert any(each in str(refusal) for each in VALIDATION), refusal
        return SOAK.count("prompts", "refused before the run")
    _, error = attempt(client.finish, identity)
    if error:
        assert CLEAR.search(str(error)), error
        return SOAK.count("prompts", "refused by our node")
    return SOAK.count("prompts", "finished")
