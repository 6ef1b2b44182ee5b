import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from token_merge.tome_core import Draws, TokenGrid
from token_merge.tome_core.cells import list_cells, pick_nearest

CPU = torch.device("cpu")
FACTORS = st.floats(1.0, 8.0)
GRIDS = st.builds(
    lambda grid, factor, temporal: (grid, grid.downsample(factor, temporal)),
    st.builds(TokenGrid, st.integers(1, 13), st.integers(1, 13), st.integers(1, 5)),
    FACTORS,
    FACTORS,
)


def draw(
    grid: TokenGrid, smaller: TokenGrid, times: int, seed: int = 0, index: int = 0
) -> torch.Tensor:
    return list_cells(grid, smaller, times, CPU).draw(Draws((seed,), CPU, index))


def find_cell(grid: TokenGrid, smaller: TokenGrid, tokens: torch.Tensor) -> torch.Tensor:
    """The cell that every token lies in, by the bounds of its side."""

    def along(place: torch.Tensor, side: int, count: int) -> torch.Tensor:
        ends = torch.tensor([(cell + 1) * side // count for cell in range(count)])
        return torch.searchsorted(ends, place, right=True)

    frame = along(tokens // (grid.height * grid.width), grid.frames, smaller.frames)
    y = along(tokens // grid.width % grid.height, grid.height, smaller.height)
    x = along(tokens % grid.width, grid.width, smaller.width)
    return (frame * smaller.height + y) * smaller.width + x


@given(GRIDS, st.integers(0, 99), st.integers(0, 99))
def test_one_token_is_drawn_in_each_cell(grids, seed, index):
    for drawn in draw(*grids, 3, seed, index):
        assert torch.equal(find_cell(*grids, drawn), torch.arange(grids[1].tokens))


@given(GRIDS, st.integers(1, 9))
def test_no_token_is_drawn_again_before_its_whole_cell_was(grids, times):
    sizes = find_cell(*grids, torch.arange(grids[0].tokens)).bincount().tolist()
    for size, tokens in zip(sizes, draw(*grids, times).T, strict=True):
        assert len(tokens[:size].unique()) == min(size, times)


@given(GRIDS, st.integers(1, 9), st.integers(0, 99))
def test_from_index_to_index_a_draw_goes_round_the_largest_cells(grids, times, begin):
    largest = find_cell(*grids, torch.arange(grids[0].tokens)).bincount()
    indices = range(begin, begin + int(largest.max()))
    drawn = torch.stack([draw(*grids, times, index=index) for index in indices])  # (I, times, M)
    round_a_cell = drawn[:, :, largest == largest.max()].sort(0).values
    assert (round_a_cell.diff(dim=0) > 0).all()


def test_where_the_draws_of_a_layer_begin_is_computed_once_in_a_run(monkeypatch):
    asked = []
    draw_below = Draws.draw_below

    def count(draws, most):
        asked.append(draws.identity)
        return draw_below(draws, most)

    monkeypatch.setattr(Draws, "draw_below", count)
    grid = TokenGrid(7, 11)
    for index in range(3):
        for layer in ("input", "output"):
            draws = Draws(("once in a run", layer), CPU, index)
            list_cells(grid, grid.downsample(2.0, 1.0), 4, CPU).draw(draws)
    assert asked == [("once in a run", "input"), ("once in a run", "output")]


@pytest.mark.parametrize(("factor", "share"), [(2.0, 0.5), (3.0, 1.0), (4.0, 1.0)])
def test_each_index_draws_from_another_row_and_column_than_the_one_before(factor, share):
    """In cells of 2 x 2 half of the ways from token to token lead along a side."""
    grid = TokenGrid(12, 12)
    indices = range(int(factor**2) + 1)
    drawn = torch.stack(
        [draw(grid, grid.downsample(factor), 1, index=index)[0] for index in indices]
    )
    rows, columns = drawn // grid.width, drawn % grid.width
    apart = (rows.diff(dim=0) != 0) & (columns.diff(dim=0) != 0)
    assert apart.double().mean() == share


@given(GRIDS)
def test_the_nearest_token_to_the_centre_is_another_one_for_each_cell(grids):
    grid, smaller = grids
    nearest = pick_nearest(grid, smaller, CPU, centred=True)
    assert len(nearest.unique()) == smaller.tokens
    assert ((nearest >= 0) & (nearest < grid.tokens)).all()


def test_every_token_of_a_cell_is_drawn_equally_often():
    grid = TokenGrid(5, 4)  # cells: rows of 2 and of 3, columns of 2
    draws = torch.stack([draw(grid, grid.downsample(2.0), 1, seed) for seed in range(6000)])
    often = draws.flatten().bincount(minlength=grid.tokens).view(5, 4) / 6000
    expected = torch.tensor([1 / 4, 1 / 4, 1 / 6, 1 / 6, 1 / 6])[:, None].expand(5, 4)
    torch.testing.assert_close(often, expected, atol=0.03, rtol=0)


def test_a_seed_draws_the_same_tokens_again_and_another_seed_others():
    first, again, other = (draw(TokenGrid(16, 16), TokenGrid(4, 4), 2, seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_what_is_kept_of_a_grid_can_be_used_in_and_out_of_inference_mode():
    """A training run may follow a sampling run of the same size."""
    with torch.inference_mode():
        draw(TokenGrid(6, 10), TokenGrid(3, 5), 1)
    x = torch.randn(1, 60, 2, requires_grad=True)
    x[:, draw(TokenGrid(6, 10), TokenGrid(3, 5), 1)[0]].sum().backward()
    assert x.grad.sum() == 15 * 2
