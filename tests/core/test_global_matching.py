import torch
from hypothesis import given
from hypothesis import strategies as st
from token_merge.tome_core import TokenGrid, choose_strided, match_global

CPU = torch.device("cpu")


@given(st.integers(2, 9), st.integers(2, 9), st.integers(1, 3), st.integers(0, 99))
def test_exactly_the_asked_number_of_tokens_is_merged_away(height, width, batch, merged):
    grid = TokenGrid(height, width)
    dst = choose_strided(grid, 2, 2, None, CPU)
    plan = match_global(torch.randn(batch, grid.tokens, 4), grid, dst, merged)
    assert plan.keys_read == grid.tokens - min(merged, grid.tokens - dst.count)
    assert (plan.sizes >= 1).all()


def test_equal_tokens_merge_and_lose_nothing():
    grid = TokenGrid(4, 4)
    left, right = torch.randn(2, 1, 8)
    image = torch.where(torch.arange(16)[:, None] % 4 < 2, left, right)[None]  # (1, 16, 8)
    plan = match_global(image, grid, choose_strided(grid, 2, 2, None, CPU), 12)
    torch.testing.assert_close(plan.unmerge(plan.merge(image)), image)


def test_the_most_similar_sources_are_merged_first():
    grid = TokenGrid(2, 2)
    x = torch.tensor([[[1.0, 0.0], [1.0, 0.1], [1.0, 2.0], [0.0, 1.0]]])
    plan = match_global(x, grid, choose_strided(grid, 2, 2, None, CPU), 1)
    assert plan.assign[0, 1] == plan.assign[0, 0]
    assert plan.assign[0].unique().numel() == 3


def test_zero_tokens_do_not_spread_nan():
    grid = TokenGrid(4, 4)
    plan = match_global(torch.zeros(1, 16, 4), grid, choose_strided(grid, 2, 2, None, CPU), 8)
    assert torch.equal(plan.merge(torch.ones(1, 16, 4)), torch.ones(1, 8, 4))


def test_each_image_is_matched_on_its_own():
    grid = TokenGrid(6, 6)
    x = torch.randn(3, 36, 4)
    dst = choose_strided(grid, 2, 2, None, CPU)
    together = match_global(x, grid, dst, 18)
    for image in range(3):
        alone = match_global(x[image : image + 1], grid, dst, 18)
        assert torch.equal(alone.assign[0], together.assign[image])
