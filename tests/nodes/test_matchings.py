"""How similar tokens are found, how long a plan is kept, and the limits by token count."""

import logging
import weakref

import pytest
import torch
from comfy.ldm.modules.attention import FeedForward
from token_merge.nodes.hooks.attention import plan_attention
from token_merge.tome_core.downsampling.plan import ChoosingPlan
from token_merge.tome_core.merging.settings import MATCHINGS


@pytest.mark.parametrize("matching", MATCHINGS)
@pytest.mark.parametrize("size", [(16, 16), (13, 22)])
def test_every_matching_runs_and_reduces(matching, size, unet, tome, denoise, attention_log):
    model = tome(unet("SD15"), matching=matching, merge_mlp=True, merge_cross_attention=True)
    unpatched = denoise(unet("SD15"), size=size, steps=1)
    merged = denoise(attention_log.watch(model), size=size, steps=1)
    tokens = size[0] * size[1]
    queries, keys = attention_log.lengths[0]
    assert queries == keys
    assert 0.4 * tokens <= queries <= 0.5 * tokens + 1
    assert 0 < (merged - unpatched).norm() / unpatched.norm() < 0.3


@pytest.fixture
def plans(monkeypatch):
    """Weak references to every plan that merges. Those that choose are kept for later calls."""
    made = []
    plan_layer = plan_attention.plan_layer

    def note(*args):
        plans = plan_layer(*args)
        merging = (plan for plan in plans.values() if not isinstance(plan, ChoosingPlan))
        made.extend(map(weakref.ref, merging))
        return plans

    monkeypatch.setattr(plan_attention, "plan_layer", note)
    return made


def test_a_merging_plan_is_gone_when_memory_peaks_in_the_mlp(plans, unet, token_merge, denoise):
    alive = []
    model = token_merge(unet("SD15"))
    hooks = [
        module.register_forward_pre_hook(lambda *_: alive.extend(plan() for plan in plans))
        for module in model.model.diffusion_model.modules()
        if isinstance(module, FeedForward)
    ]
    try:
        denoise(model, steps=1)
    finally:
        for hook in hooks:
            hook.remove()
    assert alive
    assert not any(alive)


def test_a_budget_limits_the_tokens_of_a_layer(
    unet, tome, token_downsample, denoise, attention_log
):
    denoise(attention_log.watch(tome(unet("SD15"), ratio=0.0, max_tokens=40)), steps=1)
    assert (40, 40) in attention_log.lengths
    attention_log.lengths.clear()
    model = token_downsample(unet("SD15"), factor=1.0, max_tokens=40, method="stratified")
    denoise(attention_log.watch(model), steps=1)
    assert {(256, 36), (64, 36)} <= set(attention_log.lengths)


@pytest.mark.parametrize(
    ("inputs", "size", "reason"),
    [
        ({"ratio": 0.1}, (16, 16), "merging 25 of 256 tokens costs more than it saves"),
        ({"ratio": 0.5}, (4, 6), "24 tokens are too few to gain"),
    ],
)
def test_a_layer_that_merging_would_slow_down_is_left_alone(
    inputs, size, reason, unet, token_merge, denoise, caplog
):
    with caplog.at_level(logging.INFO, logger="token_merge"):
        merged = denoise(token_merge(unet("SD15"), **inputs), size=size)
    assert torch.equal(merged, denoise(unet("SD15"), size=size))
    assert reason in caplog.text
