"""Which combinations are tried, and which of them were as the table says."""

from __future__ import annotations

import pytest

from .cells import Cell, list_cells, list_few_cells


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cell" in metafunc.fixturenames:
        whole = metafunc.config.getoption("long")
        metafunc.parametrize("cell", list_cells() if whole else list_few_cells(), ids=str)


@pytest.fixture(scope="session")
def seen() -> set[Cell]:
    """The cells that were as the table says."""
    return set()
