import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from token_merge.tome_core.grid import TokenGrid
from token_merge.tome_core.matchers import kept_tokens, plan_merge, smaller_grid
from token_merge.tome_core.partition import seeded_generator
from token_merge.tome_core.settings import MATCHINGS, DownsampleSettings, MergeSettings


def plan(grid, settings, batch=1):
    return plan_merge(torch.randn(batch, grid.tokens, 8), grid, settings, seeded_generator(0))


@pytest.mark.parametrize("matching", MATCHINGS)
@pytest.mark.parametrize("ratio", [0.2, 0.5, 0.75])
def test_every_matching_keeps_the_share_that_the_ratio_leaves(matching, ratio):
    grid = TokenGrid(16, 24)
    made = plan(grid, MergeSettings(ratio=ratio, matching=matching), batch=2)
    kept = grid.tokens - int(ratio * grid.tokens)
    rounding = made.tiling.tiles if matching == "toma" else 0
    assert kept - rounding <= made.slots <= kept
    x = torch.randn(2, grid.tokens, 3)
    assert made.unmerge(made.merge(x)).shape == x.shape


@settings(deadline=None)
@given(
    height=st.integers(2, 40),
    width=st.integers(2, 40),
    budget=st.integers(1, 400),
    matching=st.sampled_from(["local", "global", "k-th", "random"]),
)
def test_a_budget_holds_whatever_the_size(height, width, budget, matching):
    grid = TokenGrid(height, width)
    asked = MergeSettings(ratio=0.0, max_tokens=budget, matching=matching)
    assume(kept_tokens(grid, asked) < grid.tokens)
    assert plan(grid, asked).slots <= budget


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 2000))
def test_a_downsampling_budget_holds_whatever_the_size(height, width, budget):
    grid = TokenGrid(height, width)
    smaller = smaller_grid(grid, DownsampleSettings(factor=1.0, max_tokens=budget), 1.0)
    narrow = min(height, width) == 1 or math.sqrt(grid.tokens / budget) > min(height, width)
    assert smaller.tokens <= budget or narrow


def test_a_budget_that_is_not_reached_changes_nothing():
    grid = TokenGrid(8, 8)
    plain, budgeted = (
        plan(grid, MergeSettings(ratio=0.5, max_tokens=budget)) for budget in (0, 64)
    )
    assert plain.slots == budgeted.slots == 32
    settings = DownsampleSettings(factor=2.0, max_tokens=64)
    assert smaller_grid(grid, settings, 2.0).tokens == 16


def test_random_matching_takes_ratios_beyond_the_strides():
    assert plan(TokenGrid(10, 10), MergeSettings(ratio=0.9, matching="random")).slots == 10


@pytest.mark.parametrize("matching", ["local", "global"])
def test_a_grid_smaller_than_a_cell_is_refused(matching):
    with pytest.raises(ValueError, match="grid 1x8 is smaller than one 2x2 cell"):
        plan(TokenGrid(1, 8), MergeSettings(matching=matching))
