"""Merged queries of local windows, from any setting on any grid: right, or skipped."""

import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from support.core_cases import (
    check_slots,
    comparable_tokens,
    grids,
    make_layer,
    streams,
    tokens,
    window_merge_settings,
)
from support.fuzzing import SOAK, fuzzed
from support.layers import plan_layer
from token_merge.tome_core import WindowPlan, attend
from token_merge.tome_core.windows.reference import attend_densely


@st.composite
def cases(draw):
    stream = draw(streams(grids(most_side=20, most_frames=4)))
    return draw(window_merge_settings()), stream, draw(tokens(stream.grid.tokens))


@fuzzed(short=60, share=0.1)
@given(cases())
def test_attention_with_any_setting_is_that_of_the_keys_each_query_reads(case):
    settings, stream, batch = case
    assume(0 < batch.batch <= 3)
    plan = plan_layer(settings, make_layer(settings, stream, batch.draw(stream.grid.tokens)))
    if not isinstance(plan, WindowPlan):
        return SOAK.count("merged queries", "no window")
    if plan.merged:
        check_slots(plan.merged)
    q, k, v = torch.randn(3, batch.batch, 2, stream.length, 4)
    expected = attend_densely(plan, q, k, v, None, 0.5)
    torch.testing.assert_close(attend(plan, q, k, v, None, 0.5), expected)
    return SOAK.count("merged queries", "compared" if plan.merged else "nothing merged")


@fuzzed(short=30, share=0.05)
@given(streams(grids(most_side=20)), window_merge_settings(), comparable_tokens())
def test_an_image_of_a_batch_is_merged_as_it_is_alone(stream, settings, batch):
    metric = batch.draw(stream.grid.tokens)
    plan, alone = (
        plan_layer(settings, make_layer(settings, stream, each)) for each in (metric, metric[-1:])
    )
    if not isinstance(plan, WindowPlan) or not plan.merged:
        return SOAK.count("merged queries of split batches", "nothing merged")
    elsewhere = (plan.merged.slots[-1] != alone.merged.slots[-1]).float().mean()
    assert elsewhere <= 0.02 + 2 / stream.grid.tokens
    return SOAK.count("merged queries of split batches", "compared")
