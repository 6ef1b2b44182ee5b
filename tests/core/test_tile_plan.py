import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from token_merge.tome_core.grid import TokenGrid
from token_merge.tome_core.tile_plan import SHARPNESS, facility_location, match_tiles


@settings(deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.floats(0.1, 1.0), st.integers(1, 2))
def test_any_grid_keeps_at_most_what_is_asked_and_one_a_tile(height, width, share, batch):
    grid = TokenGrid(height, width)
    kept = max(1, int(share * grid.tokens))
    plan = match_tiles(torch.randn(batch, grid.tokens, 6), grid, kept)
    assert plan.slots <= max(kept, plan.tiling.tiles)
    assert plan.shape == (batch, grid.tokens)
    x = torch.randn(batch, grid.tokens, 3)
    assert plan.merge(x).shape == (batch, plan.slots, 3)
    assert plan.unmerge(plan.merge(x)).shape == x.shape


@given(st.integers(2, 20), st.integers(2, 20))
def test_a_constant_picture_stays_what_it_is(height, width):
    grid = TokenGrid(height, width)
    plan = match_tiles(torch.randn(1, grid.tokens, 6), grid, grid.tokens // 2)
    ones = torch.ones(1, grid.tokens, 2)
    torch.testing.assert_close(plan.unmerge(plan.merge(ones)), ones)


def test_weights_are_the_published_formula():
    """One tile: A = softmax over destinations; merge is A, row-normalised; unmerge is Aᵀ."""
    grid = TokenGrid(4, 4)
    x = torch.randn(1, 16, 8)
    plan = match_tiles(x, grid, 6)
    unit = F.normalize(x[0], dim=-1)
    inside = torch.ones(1, 16, dtype=torch.bool)
    chosen = facility_location((unit @ unit.T)[None, None], inside, 6)[0, 0]
    attention = (SHARPNESS * unit[chosen] @ unit.T).softmax(dim=0)  # (D, T)
    merge = attention / attention.sum(dim=1, keepdim=True)
    torch.testing.assert_close(plan.merge(x)[0], merge @ x[0])
    y = torch.randn(1, 6, 3)
    torch.testing.assert_close(plan.unmerge(y)[0], attention.T @ y[0])


def test_facility_location_covers_every_cluster():
    clusters = torch.eye(4).repeat_interleave(4, dim=0)  # (16, 4)
    similarity = (clusters @ clusters.T)[None, None]
    chosen = facility_location(similarity, torch.ones(1, 16, dtype=torch.bool), 4)
    assert sorted((chosen[0, 0] // 4).tolist()) == [0, 1, 2, 3]


def test_facility_location_is_greedy():
    """Each choice adds at least as much coverage as any other token would have."""
    unit = F.normalize(torch.randn(12, 5), dim=-1)
    similarity = unit @ unit.T
    chosen = facility_location(similarity[None, None], torch.ones(1, 12, dtype=torch.bool), 5)
    covered = torch.full((12,), -1.0)
    for token in chosen[0, 0].tolist():
        gains = (similarity - covered).clamp_min(0).sum(dim=1)
        assert gains[token] == pytest.approx(gains.max().item(), abs=1e-5)
        covered = torch.maximum(covered, similarity[token])


def test_each_image_chooses_its_own_destinations():
    grid = TokenGrid(8, 8)
    x = torch.randn(2, 64, 6)
    together = match_tiles(x, grid, 20)
    for image in range(2):
        alone = match_tiles(x[image : image + 1], grid, 20)
        torch.testing.assert_close(alone.merge_weights[0], together.merge_weights[image])
    assert not torch.equal(together.merge_weights[0], together.merge_weights[1])
