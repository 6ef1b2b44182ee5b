import torch
from hypothesis import given
from hypothesis import strategies as st
from token_merge.tome_core import Cells, TokenGrid, seeded_generator

FACTORS = st.floats(1.0, 8.0)
CELLS = st.builds(
    lambda grid, factor, temporal: Cells(grid, grid.downsampled(factor, temporal)),
    st.builds(TokenGrid, st.integers(1, 13), st.integers(1, 13), st.integers(1, 5)),
    FACTORS,
    FACTORS,
)


def cell_of(cells: Cells, tokens: torch.Tensor) -> torch.Tensor:
    """The cell that every token lies in, by the bounds of its side."""
    grid, smaller = cells.grid, cells.smaller

    def along(place: torch.Tensor, side: int, count: int) -> torch.Tensor:
        ends = torch.tensor([(cell + 1) * side // count for cell in range(count)])
        return torch.searchsorted(ends, place, right=True)

    frame = along(tokens // (grid.height * grid.width), grid.frames, smaller.frames)
    y = along(tokens // grid.width % grid.height, grid.height, smaller.height)
    x = along(tokens % grid.width, grid.width, smaller.width)
    return (frame * smaller.height + y) * smaller.width + x


@given(CELLS, st.integers(0, 99))
def test_one_token_is_drawn_in_each_cell(cells, seed):
    for drawn in cells.drawn(3, seeded_generator(seed)):
        assert torch.equal(cell_of(cells, drawn), torch.arange(cells.smaller.tokens))


@given(CELLS, st.integers(1, 9))
def test_no_token_is_drawn_again_before_its_whole_cell_was(cells, draws):
    drawn = cells.drawn(draws, seeded_generator(0))
    for cell, tokens in enumerate(drawn.T):
        size = cell_of(cells, torch.arange(cells.grid.tokens)).eq(cell).sum().item()
        assert len(tokens[:size].unique()) == min(size, draws)


@given(CELLS)
def test_the_nearest_token_to_the_centre_lies_in_its_cell_or_next_to_it(cells):
    nearest = cells.nearest(centred=True)
    assert len(nearest.unique()) == cells.smaller.tokens
    assert ((nearest >= 0) & (nearest < cells.grid.tokens)).all()


def test_every_token_of_a_cell_is_drawn_alike_often():
    grid = TokenGrid(5, 4)
    cells = Cells(grid, grid.downsampled(2.0))  # rows of 2 and of 3, columns of 2
    draws = torch.stack([cells.drawn(1, seeded_generator(n)) for n in range(6000)])
    often = draws.flatten().bincount(minlength=grid.tokens).view(5, 4) / 6000
    expected = torch.tensor([1 / 4, 1 / 4, 1 / 6, 1 / 6, 1 / 6])[:, None].expand(5, 4)
    torch.testing.assert_close(often, expected, atol=0.03, rtol=0)


def test_a_seed_draws_the_same_tokens_again_and_another_seed_others():
    cells = Cells(TokenGrid(16, 16), TokenGrid(4, 4))
    first, again, other = (cells.drawn(2, seeded_generator(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
