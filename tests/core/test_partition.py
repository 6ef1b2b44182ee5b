import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from token_merge.tome_core.grid import TokenGrid
from token_merge.tome_core.partition import seeded_generator, strided_partition


@st.composite
def cells(draw):
    stride_y, stride_x = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    height, width = draw(st.integers(stride_y, 11)), draw(st.integers(stride_x, 11))
    return TokenGrid(height, width, draw(st.integers(1, 2))), stride_y, stride_x


@given(cells(), st.one_of(st.none(), st.integers(0, 99)))
def test_every_token_is_a_source_or_a_destination(cell, seed):
    grid, stride_y, stride_x = cell
    generator = None if seed is None else seeded_generator(seed)
    partition = strided_partition(grid, stride_y, stride_x, generator)
    everyone = torch.cat([partition.src, partition.dst]).sort().values
    assert torch.equal(everyone, torch.arange(grid.tokens))


@given(cells(), st.integers(0, 99))
def test_every_cell_has_one_destination(cell, seed):
    grid, stride_y, stride_x = cell
    dst = strided_partition(grid, stride_y, stride_x, seeded_generator(seed)).dst
    frame, y, x = (
        dst // (grid.height * grid.width),
        dst // grid.width % grid.height,
        dst % grid.width,
    )
    cells_hit = set(
        zip(frame.tolist(), (y // stride_y).tolist(), (x // stride_x).tolist(), strict=True)
    )
    cells_there = grid.frames * (grid.height // stride_y) * (grid.width // stride_x)
    assert len(cells_hit) == dst.numel() == cells_there


def test_without_a_generator_the_first_token_of_each_cell_is_the_destination():
    assert strided_partition(TokenGrid(4, 5), 2, 2).dst.tolist() == [0, 2, 10, 12]


def test_a_grid_smaller_than_a_cell_is_refused():
    with pytest.raises(ValueError, match="grid 1x9 is smaller than one 2x2 cell"):
        strided_partition(TokenGrid(1, 9), 2, 2)


def test_destinations_depend_on_the_identity_alone():
    grid = TokenGrid(16, 16)
    draw = [strided_partition(grid, 2, 2, seeded_generator(*i)).dst for i in ((1, 2), (1, 2))]
    other = strided_partition(grid, 2, 2, seeded_generator(12)).dst
    assert torch.equal(*draw)
    assert not torch.equal(draw[0], other)


def test_the_global_random_state_is_left_alone():
    before = torch.get_rng_state()
    strided_partition(TokenGrid(8, 8), 2, 2, seeded_generator(0))
    assert torch.equal(torch.get_rng_state(), before)
