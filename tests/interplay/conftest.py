"""Which combinations are tried, and which of them were as the table says."""

from __future__ import annotations

from typing import Any

import pytest

from .cells import Cell, list_cells, list_few_cells, list_fewest_cells


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cell" in metafunc.fixturenames:
        long = metafunc.config.getoption("long")
        cells = list_cells() if long else list_few_cells()
        fewest = list_fewest_cells()
        metafunc.parametrize("cell", [_mark(cell, cell in fewest) for cell in cells])


def _mark(cell: Cell, is_one_of_the_fewest: bool) -> Any:
    marks = () if is_one_of_the_fewest else pytest.mark.thorough
    return pytest.param(cell, id=str(cell), marks=marks)


@pytest.fixture(scope="session")
def seen() -> set[Cell]:
    """The cells that were as the table says."""
    return set()
