"""Plans with fewer keys, from any setting on any grid: right, or skipped with a reason."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import assume, given
from support.core_cases import (
    downsample_settings,
    grids,
    make_layer,
    seeds,
    streams,
    tokens,
    window_settings,
)
from support.fuzzing import SOAK, fuzzed
from support.layers import plan_layer
from token_merge.tome_core import Draws, Skipped, WindowPlan, attend, draw_groups
from token_merge.tome_core.downsampling.settings import DRAWN
from token_merge.tome_core.windows.reference import attend_densely

CPU = torch.device("cpu")
AVERAGING = ("nearest-exact", "nearest", "bilinear", "area", "max")
"""The values of these methods lie between those of the tokens, other than those of methods that
draw."""


@st.composite
def cases(draw, most_side=64):
    stream = draw(streams(grids(most_side)))
    level = draw(st.sampled_from([0, 0, 0, 1, 2]))
    of_model = draw(st.sampled_from([0, 16]))
    return draw(downsample_settings()), stream, level, of_model


def make(case):
    settings, stream, level, of_model = case
    return plan_layer(settings, make_layer(settings, stream, None, level, of_model))


def find_cells(numbers, grid, smaller):
    """Which cell of ``smaller`` holds each token."""
    place = torch.stack(torch.unravel_index(numbers, grid.sides), dim=-1)
    sides, few = torch.tensor(grid.sides), torch.tensor(smaller.sides)
    # Cell c begins at floor(c * sides / few): the last c whose beginning is at most the place.
    cell = ((place + 1) * few + sides - 1) // sides - 1
    return (cell * torch.tensor([smaller.height * smaller.width, smaller.width, 1])).sum(dim=-1)


def check_kept(kept, plan, grid):
    """One token of each cell in each row."""
    every_cell = torch.arange(plan.smaller.tokens)
    for row in kept:
        assert torch.equal(find_cells(row, grid, plan.smaller), every_cell)


def check_choosing(plan, stream, method):
    kept = plan.chosen[:, stream.before : plan.keys_read - stream.after] - stream.before
    if method in DRAWN:
        check_kept(kept, plan, stream.grid)
    # The middle of a cell may lie in the next one, where sides do not divide each other.
    rows = kept.sort().values
    assert (rows.diff() > 0).all()
    assert ((rows >= 0) & (rows < stream.grid.tokens)).all()
    assert plan.keys_read == plan.smaller.tokens + stream.others
    assert plan.chosen.shape == (plan.groups, plan.keys_read)
    assert plan.groups * plan.keys_read <= stream.length
    others = range(stream.before), range(stream.before + stream.grid.tokens, stream.length)
    for row in plan.chosen.tolist():
        assert row[: stream.before] == [*others[0]]
        assert row[len(row) - stream.after :] == [*others[1]]
    if stream.others:
        assert plan.sizes.sum() == stream.length
    else:
        assert plan.sizes is None


def check_windows(plan, stream):
    """Each query is in a tile, whose keys are of the picture and stand for all of it."""
    grid, first, geometry = stream.grid, stream.before, plan.geometry
    queries = geometry.queries.flatten()[geometry.places]
    assert torch.equal(queries, first + torch.arange(grid.tokens))
    sets = [plan.near, *plan.far]
    layouts = [keys.layout for keys in sets]
    assert geometry.keys_read == sum(layout.keys_read for layout in layouts) < grid.tokens
    stand_for = sum(layout.keys_read * layout.weight for layout in layouts)
    assert stand_for == pytest.approx(grid.tokens)
    for keys in (*sets, *filter(None, [plan.of_others])):
        assert keys.numbers.min() >= first
        assert keys.numbers.max() < first + grid.tokens
        layout = keys.layout
        end = (geometry.tiles[layout.of.sliding_axis] - 1) * layout.step + layout.keys_read
        assert end == keys.numbers.shape[-1] or layout.step == 0


@fuzzed(short=100, share=0.2)
@given(cases())
def test_keys_stand_for_every_token_once(case):
    settings, stream, *_ = case
    plan = make(case)
    if isinstance(plan, Skipped):
        assert "are within the factor and max_tokens already" in plan.reason
        return SOAK.count("downsampling", "skipped with a reason")
    grid = stream.grid
    if isinstance(plan, WindowPlan):
        check_windows(plan, stream)
        return SOAK.count("downsampling", "plans, local windows")
    assert plan.smaller.tokens < grid.tokens
    assert all(few <= most for few, most in zip(plan.smaller.sides, grid.sides, strict=True))
    check_choosing(plan, stream, settings.method)
    return SOAK.count("downsampling", f"plans, {settings.method}")


@st.composite
def resampled(draw):
    case = draw(cases(most_side=32))
    return case, draw(tokens(case[1].length))


@fuzzed(short=40, share=0.06)
@given(resampled())
def test_values_come_from_the_tokens_of_their_image(drawn):
    case, batch = drawn
    settings, stream, *_ = case
    plan = make(case)
    if isinstance(plan, Skipped | WindowPlan):
        return SOAK.count("values", "nothing to compare")
    x = batch.draw(stream.length)
    chosen, merged = plan.choose(x), plan.merge(x)
    assert (
        chosen.shape == merged.shape == (batch.batch * plan.groups, plan.keys_read, batch.channels)
    )
    assert chosen.dtype == merged.dtype == x.dtype
    numbers = plan.chosen.repeat(batch.batch, 1)
    images = x.repeat_interleave(plan.groups, 0)
    assert torch.equal(chosen.nan_to_num(), images.gather(1, _wide(numbers, x)).nan_to_num())
    if batch.content == "random" and batch.batch and settings.method in AVERAGING:
        most, least = x.amax(dim=1, keepdim=True), x.amin(dim=1, keepdim=True)
        slack = 4 * torch.finfo(x.dtype).eps * x.abs().amax()
        assert ((merged <= most + slack) & (merged >= least - slack)).all()
    # PyTorch may take another kernel for one image, and round the last bits otherwise.
    roundoffs = 4 * torch.finfo(x.dtype).eps
    largest = float(x[x.isfinite()].abs().max()) if x.isfinite().any() else 0.0
    for image in range(min(2, batch.batch)):
        own = slice(image * plan.groups, (image + 1) * plan.groups)
        alone = plan.merge(x[image, None])
        torch.testing.assert_close(
            merged[own], alone, atol=roundoffs * largest, rtol=roundoffs, equal_nan=True
        )
    return SOAK.count("values", "compared")


def _wide(numbers, x):
    return numbers[..., None].expand(-1, -1, x.shape[2])


@st.composite
def attentions(draw):
    """A small stream, and heads of queries that share heads of keys."""
    stream = draw(streams(grids(most_side=16)))
    case = draw(window_settings()), stream, 0, 16
    batch = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.sampled_from([1, 2]))
    mask = draw(st.sampled_from(["none", "row for all", "row for each", "closed for some"]))
    types = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
    return case, batch, mask, draw(st.sampled_from(types)), draw(st.integers(0, 999))


def draw_mask(kind, sides, stream, generator):
    images, heads, length = sides
    if kind == "none":
        return None
    rows = 1 if kind == "row for all" else length
    mask = torch.randn(images, heads, rows, length, generator=generator)
    if kind == "closed for some" and stream.others:
        # Not for the other tokens: some query would read no key at all.
        closed = torch.rand(mask.shape, generator=generator) < 0.3
        closed &= torch.ones(length, dtype=torch.bool).index_fill(
            0, stream.number_others(CPU), False
        )
        mask = mask.masked_fill(closed, float("-inf"))
    return mask


@fuzzed(short=60, share=0.1)
@given(attentions())
def test_attention_in_windows_is_the_dense_one(drawn):
    case, (images, key_heads, share), kind, dtype, seed = drawn
    _, stream, *_ = case
    plan = make(case)
    if not isinstance(plan, WindowPlan) or stream.length > 600:
        return SOAK.count("attention in windows", "no window, or too large for the dense one")
    generator = torch.Generator().manual_seed(seed)
    heads = key_heads * share
    q = torch.randn(images, heads, stream.length, 8, generator=generator).to(dtype)
    k, v = torch.randn(2, images, key_heads, stream.length, 8, generator=generator).to(dtype)
    mask = draw_mask(kind, (images, heads, stream.length), stream, generator)
    mask = None if mask is None else mask.to(dtype)
    found = attend(plan, q, k, v, mask, 0.3)
    exact_mask = None if mask is None else mask.double()
    exact = attend_densely(plan, *(x.double() for x in (q, k, v)), exact_mask, 0.3)
    assert found.dtype == dtype
    tolerance = max(2e-5, 16 * torch.finfo(dtype).eps)
    torch.testing.assert_close(found.double(), exact, atol=tolerance, rtol=tolerance)
    last_mask = None if mask is None else mask[-1:]
    alone = attend(plan, q[-1:], k[-1:], v[-1:], last_mask, 0.3)
    torch.testing.assert_close(alone, found[-1:], atol=tolerance, rtol=tolerance)
    return SOAK.count("attention in windows", f"the dense one, {dtype}")


@fuzzed(short=20, share=0.02)
@given(st.integers(1, 4096), st.integers(1, 4), seeds())
def test_query_groups_join_what_they_split(queries, groups, seed):
    assume(groups <= queries)
    made = draw_groups(queries, groups, Draws((seed,), CPU))
    x = torch.arange(2.0 * queries).view(2, queries, 1)
    split = made.split(x)
    assert split.shape == (2 * groups, -(-queries // groups), 1)
    assert torch.equal(made.join(split), x)
    assert torch.equal(made.order.unique(), torch.arange(queries))
    SOAK.count("query groups", "joined")


@fuzzed(short=20, share=0.02)
@given(st.lists(st.integers(1, 2**31), min_size=1, max_size=50), seeds(), st.integers(0, 5000))
def test_draws_stay_below_their_bound(most, seed, count):
    draws = Draws((seed, "a layer"), CPU)
    bound = torch.tensor(most)
    found = draws.draw_below(bound)
    assert ((found >= 0) & (found < bound)).all()
    assert torch.equal(found, draws.draw_below(bound))
    assert torch.equal(draws.draw_order(count).sort().values, torch.arange(count))
    SOAK.count("draws", "below their bound")
