import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from token_merge.tome_core import TokenGrid, match_tiles
from token_merge.tome_core.tile_matching import SHARPNESS, locate_facilities


@given(st.integers(1, 20), st.integers(1, 20), st.floats(0.1, 1.0), st.integers(1, 2))
def test_any_grid_keeps_at_most_what_is_asked_and_one_a_tile(height, width, share, batch):
    grid = TokenGrid(height, width)
    kept = max(1, int(share * grid.tokens))
    plan = match_tiles(torch.randn(batch, grid.tokens, 6), grid, None, grid.tokens - kept)
    assert plan.slots <= max(kept, plan.tiling.tiles)
    assert plan.shape == (batch, grid.tokens)
    x = torch.randn(batch, grid.tokens, 3)
    assert plan.merge(x).shape == (batch, plan.slots, 3)
    assert plan.unmerge(plan.merge(x)).shape == x.shape


@given(st.integers(2, 20), st.integers(2, 20))
def test_a_constant_picture_stays_what_it_is(height, width):
    grid = TokenGrid(height, width)
    plan = match_tiles(torch.randn(1, grid.tokens, 6), grid, None, grid.tokens // 2)
    ones = torch.ones(1, grid.tokens, 2)
    torch.testing.assert_close(plan.unmerge(plan.merge(ones)), ones)


def test_weights_are_the_published_formula():
    """One tile: A = softmax over destinations; merge is A, row-normalised; unmerge is Aᵀ."""
    grid = TokenGrid(4, 4)
    x = torch.randn(1, 16, 8)
    plan = match_tiles(x, grid, None, 10)
    unit = F.normalize(x[0], dim=-1)
    inside = torch.ones(1, 16, dtype=torch.bool)
    chosen = locate_facilities((unit @ unit.T)[None, None], inside, 6)[0, 0]
    attention = (SHARPNESS * unit[chosen] @ unit.T).softmax(dim=0)  # (D, T)
    merge = attention / attention.sum(dim=1, keepdim=True)
    torch.testing.assert_close(plan.merge(x)[0], merge @ x[0])
    y = torch.randn(1, 6, 3)
    torch.testing.assert_close(plan.unmerge(y)[0], attention.T @ y[0])


def test_locate_facilities_covers_every_cluster():
    clusters = torch.eye(4).repeat_interleave(4, dim=0)  # (16, 4)
    similarity = (clusters @ clusters.T)[None, None]
    chosen = locate_facilities(similarity, torch.ones(1, 16, dtype=torch.bool), 4)
    assert sorted((chosen[0, 0] // 4).tolist()) == [0, 1, 2, 3]


def test_locate_facilities_is_greedy():
    """Each choice adds at least as much coverage as any other token would have."""
    unit = F.normalize(torch.randn(12, 5), dim=-1)
    similarity = unit @ unit.T
    chosen = locate_facilities(similarity[None, None], torch.ones(1, 12, dtype=torch.bool), 5)
    covered = torch.full((12,), -1.0)
    for token in chosen[0, 0].tolist():
        gains = (similarity - covered).clamp_min(0).sum(dim=1)
        assert gains[token] == pytest.approx(gains.max().item(), abs=1e-5)
        covered = torch.maximum(covered, similarity[token])


def test_each_image_chooses_its_own_destinations():
    grid = TokenGrid(8, 8)
    x = torch.randn(2, 64, 6)
    together = match_tiles(x, grid, None, 44)
    for image in range(2):
        alone = match_tiles(x[image : image + 1], grid, None, 44)
        torch.testing.assert_close(alone.merge_weights[0], together.merge_weights[image])
    assert not torch.equal(together.merge_weights[0], together.merge_weights[1])


@given(st.integers(1, 20), st.integers(1, 20))
def test_the_token_that_stands_for_a_mean_is_one_of_its_tile(height, width):
    grid = TokenGrid(height, width, frames=2)
    plan = match_tiles(torch.randn(2, grid.tokens, 6), grid, None, grid.tokens // 2)
    tile = plan.tiling.number_tokens(torch.device("cpu"))
    of_each = plan.chosen.unflatten(1, (-1, plan.tiling.tiles)).mT
    for image in of_each:
        for numbers, tokens in zip(image, tile, strict=True):
            assert set(numbers.tolist()) <= set(tokens[tokens >= 0].tolist())
