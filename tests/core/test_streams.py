"""The picture of a transformer's sequence is reduced, everything around it stays."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from token_merge.tome_core import (
    DownsamplePlan,
    DownsampleSettings,
    InterleavedPlan,
    MergeSettings,
    Stream,
    StreamPlan,
    TokenGrid,
    TransformerSettings,
    plan_merge,
    seeded_generator,
)

COUNTS = st.integers(0, 5)
GRIDS = st.builds(TokenGrid, st.integers(2, 9), st.integers(2, 9), st.integers(1, 3))
PLANS = st.sampled_from(["merge", "downsample", "area"])


def plan_for(kind: str, stream: Stream, x: torch.Tensor) -> StreamPlan:
    grid = stream.grid
    if kind == "merge":
        metric = stream.picture(x).mean(dim=1)
        plan = plan_merge(metric, grid, MergeSettings(), seeded_generator(0))
    elif kind == "interleaved":
        plan = InterleavedPlan.draw(grid, grid.downsampled(2.0), 3, seeded_generator(0))
    else:
        method = "area" if kind == "area" else "stratified"
        plan = DownsamplePlan.of(grid, grid.downsampled(2.0, 2.0), method, seeded_generator(0))
    return StreamPlan(stream, plan)


@given(COUNTS, GRIDS, COUNTS, PLANS, st.integers(1, 2), st.integers(0, 99))
def test_tokens_around_the_picture_stay_as_they_are(before, grid, after, kind, batch, seed):
    torch.manual_seed(seed)
    stream = Stream(before, grid, after)
    x = torch.randn(batch, 3, stream.length, 4)
    plan = plan_for(kind, stream, x)
    for reduced in (plan.choose(x), plan.merge(x)):
        assert reduced.shape == (batch, 3, plan.length, 4)
        assert torch.equal(reduced[:, :, :before], x[:, :, :before])
        assert torch.equal(reduced[:, :, plan.length - after :], x[:, :, stream.length - after :])


@given(COUNTS, GRIDS, COUNTS, PLANS, st.integers(1, 2))
def test_chosen_tokens_are_tokens_of_the_picture_each_once(before, grid, after, kind, batch):
    stream = Stream(before, grid, after)
    numbers = torch.arange(stream.length, dtype=torch.float32)[None, None, :, None]
    numbers = numbers.expand(batch, 1, -1, -1)
    x = torch.randn(batch, 2, stream.length, 4)
    plan = plan_for(kind, stream, x)
    chosen = plan.choose(numbers)[:, 0, before : plan.length - after, 0]
    assert ((chosen >= before) & (chosen < before + grid.tokens)).all()
    assert all(len(row.unique()) == len(row) for row in chosen)


@given(COUNTS, GRIDS, COUNTS, st.integers(1, 2))
def test_every_token_gets_the_output_of_the_token_that_stands_for_it(before, grid, after, batch):
    stream = Stream(before, grid, after)
    x = torch.randn(batch, 2, stream.length, 4)
    plan = plan_for("merge", stream, x)
    restored = plan.unmerge(plan.choose(x))
    assert restored.shape == x.shape
    rows = plan.rows(x.device).expand(batch, -1)
    for image, kept in enumerate(rows):
        assert torch.equal(restored[image, :, kept], x[image, :, kept])


@given(COUNTS, GRIDS, COUNTS, st.integers(1, 2))
def test_every_group_has_the_tokens_around_the_picture(before, grid, after, batch):
    stream = Stream(before, grid, after)
    x = torch.randn(batch, 3, stream.length, 4)
    plan = plan_for("interleaved", stream, x)
    groups = plan.choose(x).unflatten(0, (batch, plan.groups))
    assert groups.shape == (batch, plan.groups, 3, plan.length, 4)
    assert torch.equal(plan.merge(x), plan.choose(x))
    for group in groups.unbind(1):
        assert torch.equal(group[:, :, :before], x[:, :, :before])
        assert torch.equal(group[:, :, plan.length - after :], x[:, :, stream.length - after :])


@given(COUNTS, GRIDS, COUNTS, st.sampled_from(["merge", "downsample", "area", "interleaved"]))
def test_sizes_add_up_to_the_tokens_that_went_in(before, grid, after, kind):
    stream = Stream(before, grid, after)
    plan = plan_for(kind, stream, torch.randn(2, 1, stream.length, 4))
    sizes = plan.sizes(torch.device("cpu"))
    assert sizes.shape[1] == plan.length
    assert (sizes.sum(dim=1) - stream.length).abs().max() < 1e-3
    assert (sizes[:, :before] == 1).all() and (sizes[:, plan.length - after :] == 1).all()


@pytest.mark.parametrize("kind", ["merge", "downsample"])
@pytest.mark.parametrize("batch", [1, 2])
def test_a_mask_keeps_the_columns_of_the_keys_that_remain(kind, batch):
    stream = Stream(3, TokenGrid(4, 6), 2)
    plan = plan_for(kind, stream, torch.randn(2, 1, stream.length, 4))
    mask = torch.arange(stream.length, dtype=torch.float32).expand(batch, 1, 1, -1)
    kept = plan.choose_keys_of_mask(mask)
    rows = plan.rows(mask.device)
    assert torch.equal(kept[:, 0, 0].long(), rows.expand(max(batch, len(rows)), -1))
    assert plan.choose_queries_of_mask(mask) is mask
    square = mask.mT.expand(-1, -1, -1, 5)
    assert torch.equal(plan.choose_queries_of_mask(square)[..., 0], kept[:, :, 0])


def test_downsampling_has_nothing_to_unmerge():
    stream = Stream(0, TokenGrid(4, 4))
    with pytest.raises(TypeError, match="leaves every query whole"):
        plan_for("downsample", stream, torch.randn(1, 1, 16, 4)).unmerge(torch.randn(1, 1, 4, 4))


def test_keys_are_chosen_where_values_are_averaged():
    stream = Stream(0, TokenGrid(2, 2))
    grid = stream.grid
    downsample = DownsamplePlan.of(grid, grid.downsampled(2.0), "area", seeded_generator(0))
    plan = StreamPlan(stream, downsample)
    x = torch.tensor([1.0, 2.0, 3.0, 10.0])[None, None, :, None]
    assert plan.choose(x).item() == 10.0
    assert plan.merge(x).item() == 4.0


def test_settings_keep_blocks_at_either_end():
    keeps = MergeSettings(transformer=TransformerSettings(2, 1)).transformer.keeps
    assert [keeps(block, 5) for block in range(5)] == [True, True, False, False, True]
    assert not any(DownsampleSettings().transformer.keeps(block, 5) for block in range(5))
