"""Local windows in every family, against places that were found from outside."""

from __future__ import annotations

import pytest
import torch
from support.arranged_calls import arrange_call, arrange_kinds
from support.attention_record import AttentionRecord
from support.layers import LayerTokens, plan_layer
from support.small_models import IMAGES, VIDEOS, SampleRequest, each, list_featured
from support.token_places import find_places
from token_merge.tome_core import DownsampleSettings, Draws, MergeSettings, Stream, TokenGrid
from token_merge.tome_core.attention.key_weights import make_additive
from token_merge.tome_core.faster_forms import FORMS, Form
from token_merge.tome_core.windows.reference import attend_densely

REACHED = (*IMAGES, *VIDEOS)
CPU = torch.device("cpu")


@pytest.mark.parametrize("family", each(REACHED))
def test_attention_is_that_of_the_keys_each_query_reads(family, token_downsample):
    run = SampleRequest.with_tokens(family, 5, 7, steps=1)
    check_first_block(family, run, token_downsample, DownsampleSettings())


@pytest.mark.parametrize("family", list_featured(REACHED), ids=str)
def test_attention_of_merged_queries_is_that_of_the_keys_they_read(family, token_merge):
    run = SampleRequest.with_tokens(family, 6, 8, steps=1)
    check_first_block(family, run, token_merge, MergeSettings())


ASKED = {"Flux": 0, "Qwen-Image": 2, "AuraFlow": 0, "Ideogram 4": 2}
"""So many tokens of the prompt are masked in a family."""


@pytest.mark.parametrize("family", [each for each in REACHED if each.name in ASKED], ids=str)
def test_a_kernel_is_asked_before_planning_of_the_call_that_it_will_be_given(
    family, token_downsample, monkeypatch
):
    """Numbers' type, channels of a head, whether there is a mask, and the precision."""
    asked, given = set(), set()

    def takes(plan, q, k, v, mask, scale):
        given.add((q.dtype, q.shape[3], mask is not None, plan.precision))
        return False

    def ask(device, *call):
        asked.add(call)
        return ""

    monkeypatch.setitem(FORMS, "windows.attend", Form(pytest.fail, takes, ask, CPU.type))
    run = SampleRequest(masked=(ASKED[family.name],), steps=1)
    run.sample(token_downsample(family.build()), family)
    assert asked == given
    assert any(masked for _, _, masked, _ in given) == bool(ASKED[family.name])


def check_first_block(family, run, node, settings):
    """What comes later is made of what the first one gave. settings: those of ``node``."""
    record = Record()
    run.sample(record.watch(node(family.build())), family)
    places = find_places(family, run)
    first = arrange_call(record.asked[places.main], places.kinds)
    stream = make_stream(family, run, arrange_kinds(places.kinds))
    plans = [plan_block(settings, stream, first.q, record.sigma, number) for number in range(6)]
    found = [is_output(plan, first) for plan in plans]
    assert found.count(True) == 1, "no block's draws give this output"
    if first.block:
        assert found[0], "the first block has another number"


def make_stream(family, run, kinds):
    before, picture = kinds.index("picture"), kinds.count("picture")
    grid = run.token_grid(family)
    assert kinds[before : before + picture] == ("picture",) * picture
    sides = dict(zip(("width", "height", "frames"), reversed(grid), strict=False))
    return Stream(TokenGrid(**sides), before, len(kinds) - before - picture)


def plan_block(settings, stream, q, sigma, number):
    """By the node's defaults."""
    draws = Draws((0, sigma, "block", number), CPU)
    layer = LayerTokens(stream, lambda: stream.take_picture(q).mean(dim=1), draws, local_window=12)
    return plan_layer(settings, layer)


def is_output(plan, call):
    mask = None if call.mask is None else make_additive(call.mask, call.q.dtype)
    scale = call.scale or call.q.shape[-1] ** -0.5
    expected = attend_densely(plan, call.q, call.k, call.v, mask, scale)
    asking = (call.q != 0).any(dim=(1, 3), keepdim=True)
    return torch.allclose(expected * asking, call.out, atol=1e-4, rtol=1e-4)


class Record(AttentionRecord):
    sigma = None

    def watch(self, model):
        clone = super().watch(model)

        def note(apply_model, call):
            self.sigma = float(call["timestep"].max())
            return apply_model(call["input"], call["timestep"], **call["c"])

        clone.set_model_unet_function_wrapper(note)
        return clone
