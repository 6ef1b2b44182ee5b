"""How similar tokens are found, how long a plan is kept, and the limits by token count."""

import inspect
import logging
import weakref

import pytest
import torch
from comfy.ldm.modules.attention import FeedForward
from token_merge.nodes.hooks import layer_plans
from token_merge.nodes.token_downsample import TokenDownsample
from token_merge.nodes.token_merge import TokenMerge
from token_merge.tome_core.settings import MATCHINGS


@pytest.mark.parametrize("matching", MATCHINGS)
@pytest.mark.parametrize("size", [(16, 16), (13, 22)])
def test_every_matching_runs_and_reduces(matching, size, unet, token_merge, denoise, attention_log):
    model = token_merge(unet("SD15"), matching=matching, merge_mlp=True, merge_cross_attention=True)
    plain = denoise(unet("SD15"), size=size, steps=1)
    merged = denoise(attention_log.watch(model), size=size, steps=1)
    tokens = size[0] * size[1]
    queries, keys = attention_log.lengths[0]
    assert queries == keys
    assert 0.4 * tokens <= queries <= 0.5 * tokens + 1
    assert 0 < (merged - plain).norm() / plain.norm() < 0.3


@pytest.mark.parametrize(("refresh_steps", "plans"), [(0, 3 * 4), (1, 4), (2, 2), (3, 2), (100, 1)])
def test_plans_are_shared_and_kept(refresh_steps, plans, unet, token_merge, denoise, monkeypatch):
    made = []
    plan_merge = layer_plans.plan_merge
    monkeypatch.setattr(
        layer_plans, "plan_merge", lambda *args: made.append(args) or plan_merge(*args)
    )
    denoise(token_merge(unet("SD15"), refresh_steps=refresh_steps), steps=4)
    assert len(made) == plans


def test_a_plan_is_gone_when_memory_peaks_in_the_mlp(unet, token_merge, denoise, monkeypatch):
    made, alive = [], []
    plan_merge = layer_plans.plan_merge

    def remembered(*args):
        plan = plan_merge(*args)
        made.append(weakref.ref(plan))
        return plan

    monkeypatch.setattr(layer_plans, "plan_merge", remembered)
    model = token_merge(unet("SD15"))
    for module in model.model.diffusion_model.modules():
        if isinstance(module, FeedForward):
            module.register_forward_pre_hook(lambda *_: alive.extend(plan() for plan in made))
    denoise(model, steps=1)
    assert alive
    assert not any(alive)


def test_a_kept_plan_ends_with_its_run(unet, token_merge, denoise):
    model = token_merge(unet("SD15"), refresh_steps=100)
    first = denoise(model)
    denoise(model, size=(24, 8))
    assert torch.equal(denoise(model), first)


@pytest.mark.parametrize("refresh_steps", [1, 3])
def test_a_shared_plan_is_the_same_whatever_the_batch_split(
    refresh_steps, unet, token_merge, denoise, monkeypatch
):
    model = token_merge(unet("SD15"), refresh_steps=refresh_steps)
    together = denoise(model, steps=4)
    monkeypatch.setattr(type(model), "get_free_memory", lambda *_: 1)
    apart = denoise(model, steps=4)
    torch.testing.assert_close(apart, together, rtol=1e-4, atol=1e-4 * together.abs().max().item())


def test_a_budget_limits_the_tokens_of_a_layer(
    unet, token_merge, token_downsample, denoise, attention_log
):
    denoise(attention_log.watch(token_merge(unet("SD15"), ratio=0.0, max_tokens=40)), steps=1)
    assert (40, 40) in attention_log.lengths
    attention_log.lengths.clear()
    model = token_downsample(unet("SD15"), factor=1.0, max_tokens=40)
    denoise(attention_log.watch(model), steps=1)
    assert {(256, 36), (64, 36)} <= set(attention_log.lengths)


def test_layers_below_the_floor_are_left_alone(unet, token_merge, denoise, caplog):
    model = token_merge(unet("SD15"), max_downsample="8", min_tokens=200)
    with caplog.at_level(logging.INFO, logger="token_merge"):
        denoise(model)
    assert "3 layers reduced from 256 tokens" in caplog.text
    assert "64 tokens are fewer than min_tokens" in caplog.text


@pytest.mark.parametrize(
    ("node", "first_added"), [(TokenMerge, "matching"), (TokenDownsample, "max_tokens")]
)
def test_inputs_added_later_are_optional_and_last_so_that_saved_workflows_keep_working(
    node, first_added
):
    """Their widget values go by position."""
    inputs = node.GET_SCHEMA().inputs
    first = [widget.id for widget in inputs].index(first_added)
    inputs = inputs[first:]
    assert all(widget.optional and widget.advanced for widget in inputs)
    parameters = inspect.signature(node.execute).parameters
    assert all(parameters[widget.id].default == widget.default for widget in inputs)


@pytest.mark.parametrize(
    ("inputs", "size", "reason"),
    [
        ({"ratio": 0.1}, (16, 16), "merging 25 of 256 tokens costs more than it saves"),
        ({"ratio": 0.5}, (4, 6), "24 tokens are too few for merging to pay"),
    ],
)
def test_a_layer_that_merging_would_slow_down_is_left_alone(
    inputs, size, reason, unet, token_merge, denoise, caplog
):
    with caplog.at_level(logging.INFO, logger="token_merge"):
        merged = denoise(token_merge(unet("SD15"), **inputs), size=size)
    assert torch.equal(merged, denoise(unet("SD15"), size=size))
    assert reason in caplog.text
