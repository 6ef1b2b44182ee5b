"""Every setting in the types that models are loaded in: fp16, bf16, and fp8 cast by ComfyUI.

What is compared is one call of the model, with the same call of the same weights in float32. The
error is the norm of the difference over the norm of the float32 result.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from math import hypot

import pytest
from support.other_device_run import ONE_READ, run_on_both
from support.pairs import cover_pairs
from support.typed_models import MODELS, TYPES, Types

COMPARING = {
    "merged keys": {},
    "queries": {"target": "queries"},
    "keys and values": {"target": "keys and values"},
    "downsampled keys": {"target": "queries, downsampled keys and values"},
    "no window": {"target": "queries, downsampled keys and values", "local_window": "off"},
}
ON_UNETS = {
    "cross-attention and MLP": {"merge_cross_attention": True, "merge_mlp": True},
}
CHOOSING = {
    "interleaved": {"local_window": "off"},
    "stratified": {"local_window": "off", "method": "stratified"},
    "window": {"local_window": "8"},
    "area": {"method": "area"},
}

UNPATCHED = 4.0
"""The model without a node has at most this error, in unit roundoffs (0.6 to 1.3 were measured).
Rounding errors are independent, so they hardly grow with the number of layers."""

BESIDE_UNPATCHED = 1.15
"""The error of Token Downsample is at most this share of the unpatched model's (0.95 to 1.04 were
measured). It computes the same, on other tokens, and looks at no value to choose them."""

TIPPED = 10.0
"""Token Merge may also be off by this many roots of the roundoff u, as a share of what it changes
at all (0 to 7 were measured). Rounding tips those comparisons that are closer than u; there are
more of them the larger u is, and each moves a token whatever u is. So it is the squared error that
grows with u. In fp16 the bound is a quarter of that change."""

TIPPED_WITH_GROUPS = {
    ("SD15", "downsampled keys"): 15.0,
    ("SD15", "no window"): 15.0,
}
"""These are the same, where a token that is merged elsewhere also moves a few others to another
query group, whose keys are other ones (2 to 11 were measured)."""


LONG = "fp8 e5m2"
"""It is tried in the long form alone: ComfyUI casts it as it casts the other type of 8 bits."""

SHORT = ("fp16", "Flux", "merged keys"), ("bf16", "Flux", "window")
"""These are tried even in the short form."""


def pytest_generate_tests(metafunc):
    """In the long form all cases."""
    long = metafunc.config.getoption("long")
    names = [name for name in TYPES if long or name != LONG]
    if "setting" not in metafunc.fixturenames:
        return metafunc.parametrize("types", [TYPES[name] for name in names], ids=names)
    settings = {**COMPARING, **ON_UNETS} if "tome" in metafunc.fixturenames else CHOOSING
    axes, possible = (names, list(MODELS), list(settings)), _is_possible
    cases = filter(possible, product(*axes)) if long else cover_pairs(*axes, possible=possible)
    parameters = [
        pytest.param(TYPES[types], name, setting, id=f"{types}-{name}-{setting}", marks=marks)
        for types, name, setting in cases
        for marks in [() if (types, name, setting) in SHORT else pytest.mark.thorough]
    ]
    return metafunc.parametrize(("types", "name", "setting"), parameters)


def _is_possible(types, name, setting):
    return setting not in ON_UNETS or name == "SD15"


@cache
def find_exact_unpatched(name: str, types: Types):
    return run_once(MODELS[name].build_exact(types), name)


@cache
def find_error_unpatched(name: str, types: Types) -> float:
    return find_error(run_once(MODELS[name].build(types), name), find_exact_unpatched(name, types))


def run_once(model, name):
    """What one call of the model gives."""
    found = []

    def keep(apply_model, call):
        found.append(apply_model(call["input"], call["timestep"], **call["c"]))
        return found[0]

    watched = model.clone()
    watched.set_model_unet_function_wrapper(keep)
    MODELS[name].sample(watched)
    return found[0]


def find_error(found, exact):
    assert found.isfinite().all()
    return ((found.double() - exact.double()).norm() / exact.double().norm()).item()


def find_errors(reduce, name, types, exact, monkeypatch):
    """Those on the CPU and on the other device."""
    both = run_on_both(reduce(MODELS[name].build(types)), MODELS[name].sample, monkeypatch)
    assert [(each.kind, each.operation) for each in both.crossings] == ONE_READ, both.crossings
    return [find_error(each, exact) for each in both.outputs]


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODELS)
def test_the_unpatched_model_is_near_float32(name, types):
    assert find_error_unpatched(name, types) < UNPATCHED * types.roundoff


def test_merging_is_near_float32(name, setting, types, tome, monkeypatch):
    inputs = {**COMPARING, **ON_UNETS}[setting]
    exact = run_once(tome(MODELS[name].build_exact(types), **inputs), name)
    change = find_error(exact, find_exact_unpatched(name, types))
    tipped = TIPPED_WITH_GROUPS.get((name, setting), TIPPED) * types.roundoff**0.5 * change
    most = hypot(BESIDE_UNPATCHED * find_error_unpatched(name, types), tipped)
    errors = find_errors(lambda m: tome(m, **inputs), name, types, exact, monkeypatch)
    assert max(errors) < most


def test_downsampling_has_the_error_of_the_unpatched_model(
    name, setting, types, token_downsample, monkeypatch
):
    inputs = CHOOSING[setting]
    exact = run_once(token_downsample(MODELS[name].build_exact(types), **inputs), name)
    errors = find_errors(lambda m: token_downsample(m, **inputs), name, types, exact, monkeypatch)
    assert max(errors) < BESIDE_UNPATCHED * find_error_unpatched(name, types)
