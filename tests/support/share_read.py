"""How much of a picture local windows read."""

from __future__ import annotations

import torch
from token_merge.nodes.hooks.transformer.attention import LOCAL_WINDOW
from token_merge.tome_core import Stream, TokenGrid
from token_merge.tome_core.windows.planning import fit_windows


def share_read(stream: Stream) -> float:
    """Of all pairs of queries and keys, how many Token Downsample reads in its local windows."""
    grid, cpu = stream.grid, torch.device("cpu")
    smaller = TokenGrid(grid.height // 2, grid.width // 2, grid.frames)
    geometry = fit_windows(stream, smaller, LOCAL_WINDOW, 1, 1.0, cpu)
    return geometry.count_read(1.0) / stream.length
