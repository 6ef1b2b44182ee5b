import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from support.layers import LayerTokens, plan_layer
from token_merge.tome_core import (
    DownsampleSettings,
    Draws,
    MergePlan,
    MergeSettings,
    Skipped,
    Stream,
    TokenGrid,
)
from token_merge.tome_core.downsampling.planning import explain_unreduced
from token_merge.tome_core.layer import Layer
from token_merge.tome_core.merging.settings import MATCHINGS
from token_merge.tome_core.plan_layer import LayerPlan


def plan(grid, settings, batch=1):
    draws = Draws((settings.seed,), torch.device("cpu"))
    return plan_layer(
        settings, LayerTokens(Stream(grid), lambda: torch.randn(batch, grid.tokens, 8), draws)
    )


@pytest.mark.parametrize("matching", MATCHINGS)
@pytest.mark.parametrize("ratio", [0.2, 0.5, 0.75])
def test_every_matching_keeps_the_share_that_the_ratio_leaves(matching, ratio):
    grid = TokenGrid(16, 24)
    made = plan(grid, MergeSettings(ratio=ratio, matching=matching), batch=2)
    kept = grid.tokens - int(ratio * grid.tokens)
    assert made.queries_kept == kept
    x = torch.randn(2, grid.tokens, 3)
    assert made.unmerge(made.merge(x)).shape == x.shape


@given(
    height=st.integers(2, 40),
    width=st.integers(2, 40),
    most=st.integers(1, 400),
    matching=st.sampled_from(["local", "global", "k-th", "random"]),
)
def test_a_limit_of_tokens_holds_whatever_the_size(height, width, most, matching):
    grid = TokenGrid(height, width)
    made = plan(grid, MergeSettings(ratio=0.0, max_tokens=most, matching=matching))
    assume(not isinstance(made, Skipped))
    assert made.keys_read <= most


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 3), st.integers(1, 2000))
def test_a_limit_of_keys_holds_whatever_the_size(height, width, frames, most):
    grid = TokenGrid(height, width, frames)
    made = plan(grid, DownsampleSettings(factor=1.0, max_tokens=most))
    keys = grid.tokens if isinstance(made, Skipped) else made.keys_read
    assert keys <= max(most, frames)


def test_a_limit_that_is_not_reached_changes_nothing():
    grid = TokenGrid(8, 8)
    unlimited, limited = (plan(grid, MergeSettings(ratio=0.5, max_tokens=most)) for most in (0, 64))
    assert unlimited.queries_kept == limited.queries_kept == 32
    assert plan(grid, DownsampleSettings(factor=2.0, max_tokens=64)).keys_read == 16


def test_random_matching_takes_ratios_beyond_the_strides():
    assert plan(TokenGrid(10, 10), MergeSettings(ratio=0.88, matching="random")).queries_kept == 12


def test_query_groups_have_as_many_merged_queries():
    grid, merged = TokenGrid(9, 9), "queries, keys and values"
    assert plan(grid, MergeSettings(ratio=0.5)).queries_kept == 40
    assert plan(grid, MergeSettings(ratio=0.5, target=merged)).queries_kept == 41


def test_query_groups_leave_every_dst():
    """As many merged queries in all groups would be one fewer than there are dst."""
    made = plan(TokenGrid(90, 50), MergeSettings(ratio=0.75))
    assert made.queries_kept == 45 * 25


def test_a_window_that_is_left_out_is_no_reason_to_reduce_small_layers():
    grid = TokenGrid(16, 16)
    layer = Layer(Stream(grid), torch.device("cuda"), channels=320)
    settings = DownsampleSettings(method="nearest", local_window=16)
    assert "too few" in explain_unreduced(settings, layer)


def test_seeds_draw_other_groups_and_other_keys():
    first, other = (plan(TokenGrid(8, 8), DownsampleSettings(seed=seed)) for seed in (0, 1))
    assert not torch.equal(first.chosen, other.chosen)


@pytest.mark.parametrize(
    ("grid", "settings", "reason"),
    [
        (TokenGrid(1, 40), MergeSettings(), "grid 1x40 is smaller than one 2x2 cell"),
        (
            TokenGrid(7, 7),
            MergeSettings(matching="k-th", stride_x=8, stride_y=8),
            "grid 7x7 has fewer tokens than one 8x8 cell",
        ),
        (TokenGrid(4, 6), MergeSettings(), "24 tokens are too few to gain"),
        (TokenGrid(16, 16), MergeSettings(ratio=0.1), "merging 25 of 256 tokens costs more"),
        (TokenGrid(8, 8), DownsampleSettings(factor=1.0, max_tokens=64), "64 tokens are within"),
    ],
)
def test_nothing_to_do_is_a_reason_and_no_error(grid, settings, reason):
    made = plan(grid, settings)
    assert isinstance(made, Skipped)
    assert reason in made.reason


def test_a_real_error_is_raised():
    grid = TokenGrid(8, 8)
    draws = Draws((0,), torch.device("cpu"))
    with pytest.raises(RuntimeError):
        plan_layer(MergeSettings(), LayerTokens(Stream(grid), lambda: torch.randn(1, 63, 8), draws))


@pytest.mark.parametrize("weighed", [True, False])
def test_keys_that_are_weighed_are_chosen_before_projections_and_others_are_means(weighed):
    n = torch.randn(1, 4, 3)
    merged = MergePlan(torch.tensor([[0, 0, 1, 1]]), torch.tensor([[1, 2]]))
    made = LayerPlan(merged, merged, merged.sizes if weighed else None)
    means = n.unflatten(1, (2, 2)).mean(dim=2)
    queries, keys, values = made.reduce_inputs(n, n, n)
    torch.testing.assert_close(queries, means)
    torch.testing.assert_close(values, means)
    torch.testing.assert_close(keys, n[:, [1, 2]] if weighed else means)
