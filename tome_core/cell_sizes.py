"""The cells of a grid by their sizes, which differ where no side of a cell divides the grid."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import torch
from torch import Tensor

from .cells import count_tokens
from .grid import TokenGrid


@lru_cache(maxsize=32)
def count_sizes(grid: TokenGrid, smaller: TokenGrid) -> tuple[tuple[int, int], ...]:
    """The sizes that cells have, ascending, and how many cells have each."""
    sizes = count_tokens(grid, smaller, torch.device("cpu"))[0]
    return tuple(sorted(Counter(sizes.tolist()).items()))


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def order_by_size(grid: TokenGrid, smaller: TokenGrid, device: torch.device) -> Tensor | None:
    """The cells by their size, (M,) int64; None where all are equal."""
    if len(count_sizes(grid, smaller)) == 1:
        return None
    return count_tokens(grid, smaller, device)[0].argsort(stable=True)


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def list_log_sizes(
    grid: TokenGrid, smaller: TokenGrid, unit: int, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """The log of each cell's size, as a multiple of ``unit``. (M,)"""
    return (count_tokens(grid, smaller, device)[0] / unit).log().to(dtype)
