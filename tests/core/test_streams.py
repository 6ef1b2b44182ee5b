"""The picture of a transformer's sequence is reduced, the tokens around it stay."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.layers import LayerTokens, plan_layer
from token_merge.tome_core import (
    DownsampleSettings,
    Draws,
    Plan,
    Stream,
    TokenGrid,
    choose_strided,
    match_global,
)

CPU = torch.device("cpu")
COUNTS = st.integers(0, 5)
GRIDS = st.builds(TokenGrid, st.integers(2, 9), st.integers(2, 9), st.integers(1, 3))
PLANS = st.sampled_from(["merge", "stratified", "area"])


def make_plan(kind: str, stream: Stream, x: torch.Tensor) -> Plan:
    grid = stream.grid
    if kind == "merge":
        dst = choose_strided(grid, 2, 2, Draws((0,), CPU), CPU)
        metric = stream.take_picture(x).mean(dim=1)
        return match_global(metric, grid, dst, grid.tokens // 2).extend(stream)
    settings = DownsampleSettings(factor=2.0, temporal_factor=2.0, method=kind)
    return plan_layer(settings, LayerTokens(stream, pytest.fail, Draws((0,), CPU)))


@given(COUNTS, GRIDS, COUNTS, PLANS, st.integers(1, 2), st.integers(0, 99))
def test_tokens_around_the_picture_stay_as_they_are(before, grid, after, kind, batch, seed):
    torch.manual_seed(seed)
    stream = Stream(grid, before, after)
    x = torch.randn(batch, 3, stream.length, 4)
    plan = make_plan(kind, stream, x)
    for reduced in (plan.choose(x), plan.merge(x)):
        assert reduced.shape == (batch, 3, plan.keys_read, 4)
        assert torch.equal(reduced[:, :, :before], x[:, :, :before])
        assert torch.equal(
            reduced[:, :, plan.keys_read - after :], x[:, :, stream.length - after :]
        )


@given(COUNTS, GRIDS, COUNTS, PLANS, st.integers(1, 2))
def test_chosen_tokens_are_tokens_of_the_picture_each_once(before, grid, after, kind, batch):
    stream = Stream(grid, before, after)
    numbers = torch.arange(stream.length, dtype=torch.float32)[None, None, :, None]
    numbers = numbers.expand(batch, 1, -1, -1)
    x = torch.randn(batch, 2, stream.length, 4)
    plan = make_plan(kind, stream, x)
    chosen = plan.choose(numbers)[:, 0, before : plan.keys_read - after, 0]
    assert ((chosen >= before) & (chosen < before + grid.tokens)).all()
    assert all(len(row.unique()) == len(row) for row in chosen)


@given(COUNTS, GRIDS, COUNTS, st.integers(1, 2))
def test_every_token_gets_the_output_of_the_token_that_stands_for_it(before, grid, after, batch):
    stream = Stream(grid, before, after)
    x = torch.randn(batch, 2, stream.length, 4)
    plan = make_plan("merge", stream, x)
    restored = plan.unmerge(plan.choose(x))
    assert restored.shape == x.shape
    rows = plan.chosen.expand(batch, -1)
    for image, kept in enumerate(rows):
        assert torch.equal(restored[image, :, kept], x[image, :, kept])


@given(COUNTS, GRIDS, COUNTS, st.integers(1, 2))
def test_every_group_has_the_tokens_around_the_picture(before, grid, after, batch):
    stream = Stream(grid, before, after)
    x = torch.randn(batch, 3, stream.length, 4)
    plan = make_plan("interleaved", stream, x)
    groups = plan.choose(x).unflatten(0, (batch, plan.groups))
    assert groups.shape == (batch, plan.groups, 3, plan.keys_read, 4)
    assert torch.equal(plan.merge(x), plan.choose(x))
    for group in groups.unbind(1):
        assert torch.equal(group[:, :, :before], x[:, :, :before])
        assert torch.equal(group[:, :, plan.keys_read - after :], x[:, :, stream.length - after :])


@given(COUNTS, GRIDS, COUNTS, st.sampled_from(["merge", "stratified", "area", "interleaved"]))
def test_sizes_add_up_to_the_tokens_that_went_in(before, grid, after, kind):
    stream = Stream(grid, before, after)
    plan = make_plan(kind, stream, torch.randn(2, 1, stream.length, 4))
    sizes = plan.sizes
    if sizes is None:
        assert stream.others == 0
        return
    assert sizes.shape[1] == plan.keys_read
    assert (sizes.sum(dim=1) - stream.length).abs().max() < 1e-3
    assert (sizes[:, :before] == 1).all() and (sizes[:, plan.keys_read - after :] == 1).all()


def test_keys_are_chosen_where_values_are_averaged():
    plan = make_plan("area", Stream(TokenGrid(2, 2)), torch.empty(0))
    x = torch.tensor([1.0, 2.0, 3.0, 10.0])[None, None, :, None]
    assert plan.choose(x).item() == 10.0
    assert plan.merge(x).item() == 4.0
