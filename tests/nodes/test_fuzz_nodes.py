"""Any input of our nodes, on any latent, and on what is no model of ComfyUI's."""

from __future__ import annotations

import re
from types import SimpleNamespace

import hypothesis.strategies as st
import pytest
import torch
from comfy.model_patcher import ModelPatcher
from hypothesis import given
from support.fuzzing import SOAK, attempt, fuzzed
from support.node_cases import KINDS, QUICK_KINDS, applied_inputs, sampling_cases, stacks
from token_merge.nodes import NODES
from token_merge.nodes.common import ReductionNode
from token_merge.tome_core.schedule import EARLY
from torch import nn

OURS = tuple(node for node in NODES if issubclass(node, ReductionNode))
CLEAR = re.compile(r"\w+ is .*, expected |which a Token \w+ before it already reduces")
MODELS = KINDS if SOAK.cases else QUICK_KINDS


def apply_all(nodes, model):
    for node in nodes:
        model = node.apply(model)
    return model


def _acts_in_no_step(exact_early_steps, start_percent=0.0, end_percent=1.0, **_):
    return end_percent <= max(start_percent, EARLY if exact_early_steps else 0.0)


def explain_refusal(error, nodes, case):
    """Why it is right, in a word; it is ours and clear."""
    assert isinstance(error, (ValueError, TypeError))
    assert CLEAR.search(str(error)), error
    if not all(node.is_valid for node in nodes):
        return "a wrong value"
    if any(_acts_in_no_step(**node.values) for node in nodes):
        return "no step in the window"
    assert len(nodes) > 1
    return "two nodes for the same tokens"


@pytest.mark.thorough
@fuzzed(short=30, share=0.75)
@given(stacks(OURS), sampling_cases(MODELS))
def test_a_run_has_a_result_or_one_clear_error(nodes, case):
    model = case.kind.build()
    patched, refusal = attempt(apply_all, nodes, model)
    if refusal:
        reason = explain_refusal(refusal, nodes, case)
        return SOAK.count("runs of the nodes", f"refused by name ({reason})")
    unpatched, unpatched_error = attempt(case.run, model)
    found, error = attempt(case.run, patched)
    if unpatched_error:
        assert (type(error), str(error)) == (type(unpatched_error), str(unpatched_error))
        return SOAK.count("runs of the nodes", "the error of the unpatched model")
    if error:
        raise error
    assert found.shape == unpatched.shape
    assert found.dtype == unpatched.dtype
    assert (found.isfinite() | ~unpatched.isfinite()).all()
    acted = not torch.equal(found.nan_to_num(), unpatched.nan_to_num())
    return SOAK.count(
        "runs of the nodes", "sampled, reduced" if acted else "sampled, as the original"
    )


@pytest.mark.thorough
@fuzzed(short=4, share=0.05)
@given(applied_inputs(OURS).filter(lambda node: node.is_valid), sampling_cases(QUICK_KINDS))
def test_a_comparison_has_a_report_or_the_error_of_the_unpatched_model(node, case):
    model = case.kind.build()
    patched, refusal = attempt(node.apply, model)
    if refusal:
        return SOAK.count("comparisons", "refused by name")
    _, unpatched_error = attempt(case.run, model)
    found, error = attempt(case.compare, model, patched)
    if unpatched_error:
        assert type(error) is type(unpatched_error)
        return SOAK.count("comparisons", "the error of the unpatched model")
    if error:
        raise error
    unpatched, reduced, report = found
    assert unpatched["samples"].shape == reduced["samples"].shape
    assert "Token" in report
    return SOAK.count("comparisons", "compared")


class Nothing(nn.Module):
    """A diffusion model of nobody's."""


NO_MODELS = st.one_of(
    st.none(),
    st.integers(),
    st.text(max_size=3),
    st.sampled_from([(), {}, SimpleNamespace(model=None), nn.Linear(1, 1), torch.ones(1)]),
)
INNER = st.sampled_from([Nothing, nn.Identity, lambda: None, lambda: "model"])


@st.composite
def unknown_models(draw):
    """MODELs whose parts ComfyUI's own loaders would not give, with other attributes or none."""
    outer = nn.Module()
    for name in draw(st.sets(st.sampled_from(["diffusion_model", "model_config", "device"]))):
        setattr(outer, name, draw(INNER)())
    cpu = torch.device("cpu")
    return ModelPatcher(outer, load_device=cpu, offload_device=cpu)


@fuzzed(short=20, share=0.1)
@given(applied_inputs(OURS), NO_MODELS)
def test_what_is_no_model_is_refused(node, thing):
    _, error = attempt(node.apply, thing)
    assert isinstance(error, (ValueError, TypeError))
    assert CLEAR.search(str(error))
    SOAK.count("no models", "refused by name")


@fuzzed(short=20, share=0.1)
@given(applied_inputs(OURS), unknown_models())
def test_an_unknown_model_passes_through_or_the_inputs_are_refused(node, model):
    patched, error = attempt(node.apply, model)
    if error:
        assert CLEAR.search(str(error)), error
        return SOAK.count("unknown models", "inputs refused by name")
    assert patched.model is model.model
    assert not patched.wrappers
    return SOAK.count("unknown models", "passed through")
