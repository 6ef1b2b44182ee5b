"""Plans that merge, from any setting on any grid: right, or skipped with a reason."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import torch
from hypothesis import given
from support.core_cases import (
    DTYPES,
    acting_merge_settings,
    comparable_tokens,
    grids,
    make_layer,
    merge_settings,
    streams,
    tokens,
)
from support.fuzzing import SOAK, fuzzed
from support.layers import plan_layer, plan_targets
from token_merge.tome_core import Skipped
from token_merge.tome_core.attention.key_weights import add_size_channels, add_sizes_to_mask
from torch.nn.functional import scaled_dot_product_attention as attend

REASONS = (
    "are too few to gain",
    "costs more than it saves",
    "smaller than one",
    "fewer tokens than one",
)


@st.composite
def cases(draw):
    stream = draw(streams(grids()))
    return draw(merge_settings()), stream, draw(tokens(stream.grid.tokens))


def make(case):
    settings, stream, batch = case
    return plan_layer(settings, make_alone(settings, stream, batch.draw(stream.grid.tokens)))


def make_alone(settings, stream, metric):
    """A layer of a kind of model that has no local windows."""
    return make_layer(settings, stream, metric, of_model=0)


def check_slots(plan, stream):
    """Each token is in one slot, each slot has a token that stands for it."""
    assign, chosen = plan.assign, plan.chosen
    rows, slots = len(chosen), plan.keys_read
    assert plan.shape == assign.shape == (rows, stream.length)
    counts = torch.zeros(rows, slots).scatter_add_(1, assign, torch.ones(assign.shape))
    assert (counts >= 1).all()
    assert torch.equal(plan.sizes, counts)
    assert torch.equal(assign.gather(1, chosen), torch.arange(slots).expand(rows, -1))
    others = stream.number_others(chosen.device)
    for row, of_tokens in zip(plan.sizes, assign, strict=True):
        assert (row[of_tokens[others]] == 1).all(), "a token that is not of the picture is merged"


@fuzzed(short=120, share=0.19)
@given(cases())
def test_a_plan_has_every_token_in_one_slot(case):
    settings, stream, batch = case
    plan = make(case)
    if isinstance(plan, Skipped):
        assert any(reason in plan.reason for reason in REASONS)
        return SOAK.count("merging", "skipped with a reason")
    picture = plan.keys_read - stream.others
    assert 1 <= picture < stream.grid.tokens
    if settings.max_tokens:
        assert picture <= max(settings.max_tokens, stream.grid.frames)  # each keeps a dst
    check_slots(plan, stream)
    x = batch.draw(stream.length, seed=1)
    merged = plan.merge(x)
    assert merged.shape == plan.choose(x).shape == (batch.batch, plan.keys_read, batch.channels)
    restored = plan.unmerge(merged)
    assert restored.shape == x.shape
    assert restored.dtype == merged.dtype == x.dtype
    if batch.content != "one NaN":
        assert restored.isfinite().all() or not x.isfinite().all()
    return SOAK.count("merging", f"plans, {settings.matching}")


@fuzzed(short=60, share=0.03)
@given(cases())
def test_downsampled_keys_are_one_of_each_cell_for_each_group(case):
    settings, stream, batch = case
    settings = replace(settings, target="queries, downsampled keys and values")
    layer = make_alone(settings, stream, batch.draw(stream.grid.tokens))
    plans = plan_targets(settings, layer, settings.find_targets(1, (1, 2, 4)))
    if isinstance(plans, Skipped):
        return SOAK.count("downsampled keys", "skipped with a reason")
    keys, grid = plans["keys and values"], stream.grid
    assert plans["queries"].queries_kept < stream.length
    assert keys.keys_read * keys.groups <= stream.length
    picture = keys.keys_read - stream.others
    cells = max(1, grid.height // settings.stride_y) * max(1, grid.width // settings.stride_x)
    assert 1 <= picture <= grid.frames * cells
    if settings.max_tokens:
        assert picture <= max(settings.max_tokens, grid.frames)
    others = stream.number_others(keys.chosen.device)
    for group in keys.chosen:
        assert len(group.unique()) == keys.keys_read
        assert torch.isin(others, group).all()
    x = batch.draw(stream.length, seed=1)
    assert keys.choose(x).shape == (batch.batch * keys.groups, keys.keys_read, batch.channels)
    return SOAK.count("downsampled keys", f"plans, {keys.groups} groups")


@st.composite
def comparable(draw):
    """Cases that mostly merge, with numbers that can be compared."""
    stream = draw(streams(grids(most_side=20)))
    return draw(acting_merge_settings()), stream, draw(comparable_tokens())


@fuzzed(short=40, share=0.08)
@given(comparable(), st.sampled_from(DTYPES))
def test_a_slot_is_the_mean_of_its_tokens(case, dtype):
    _, stream, batch = case
    plan = make(case)
    if isinstance(plan, Skipped):
        return SOAK.count("means", "skipped with a reason")
    x = batch.draw(stream.length, seed=1).to(dtype)
    total = torch.zeros(batch.batch, plan.keys_read, batch.channels, dtype=torch.float64)
    index = plan.assign[..., None].expand(-1, -1, batch.channels)
    mean = total.scatter_add_(1, index, x.double()) / plan.sizes[..., None]
    tolerance = max(1e-6, 2 * torch.finfo(dtype).eps)
    torch.testing.assert_close(plan.merge(x).double(), mean, atol=tolerance, rtol=tolerance)
    assert torch.equal(plan.unmerge(mean), mean.gather(1, index))
    heads = x[:, None].expand(-1, 2, -1, -1)
    assert torch.equal(plan.choose(heads)[:, 1], plan.choose(x))
    return SOAK.count("means", "compared")


@fuzzed(short=40, share=0.06)
@given(comparable())
def test_an_image_of_a_batch_is_merged_as_it_is_alone(case):
    """A rounding error may tip a comparison, so a few tokens may go elsewhere."""
    settings, stream, batch = case
    plan = make(case)
    if isinstance(plan, Skipped):
        return SOAK.count("split batches", "skipped with a reason")
    alone = plan_layer(settings, make_alone(settings, stream, batch.draw(stream.grid.tokens)[-1:]))
    assert plan.keys_read == alone.keys_read
    of_batch, of_one = (made.chosen[-1][made.assign[-1]] for made in (plan, alone))
    elsewhere = (of_batch != of_one).sum()
    assert elsewhere <= 2 + 0.01 * stream.length
    return SOAK.count("split batches", "the same" if elsewhere == 0 else "the same but for ties")


@fuzzed(short=30, share=0.04)
@given(comparable())
def test_merged_keys_weigh_as_much_as_their_tokens(case):
    _, stream, batch = case
    plan = make(case)
    if isinstance(plan, Skipped):
        return SOAK.count("weights of merged keys", "skipped with a reason")
    q, k, v = (batch.draw(stream.length, seed=seed)[:, None] for seed in (1, 2, 3))
    few = plan.choose(k), plan.merge(v)
    expected = attend(q, *(plan.unmerge(x) for x in few), scale=0.3)
    mask = add_sizes_to_mask(None, plan.sizes, q.dtype)
    by_mask = attend(q, *few, attn_mask=mask, scale=0.3)
    by_channels = attend(*add_size_channels(q, *few, plan.sizes, 0.3))[..., : batch.channels]
    for found in (by_mask, by_channels):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    return SOAK.count("weights of merged keys", "compared")
