"""From settings to the plan of one layer with local windows."""

from __future__ import annotations

from math import sqrt

from .drawn_keys import DRAWS, draw_keys
from .draws import Draws
from .grid import TokenGrid
from .key_sets import KeySet, list_key_sets
from .plan import Skipped
from .settings import Settings
from .streams import Stream
from .tiled_axis import fit_axes
from .window_plan import WindowPlan

OF_OTHERS = 4.0
"""Queries that are not of the picture, those of the prompt for example, read one of so many of its
keys, as without a window at factor 2. With one of 16, pictures are 2.2 dB farther from plain at
factor 4 (small trained Flux, 64 x 64 tokens, 8 steps, 8 pictures). Little would be saved: there are
few such queries."""

LEAST_FOR_WINDOWS = {"cuda": 6400}
"""By device: with fewer tokens local windows gain nothing there unless keys are read by number,
since more than 100 kernels are started. Where the user asks for a window, it is there all the same.
"""

QUERIES_AT_ONCE = {"cuda": 128}
"""By device: how many queries PyTorch's fastest kernel computes at once, whether there are as many
or not. (FlashAttention 2 with up to 128 channels.)"""


def plan_windows(
    settings: Settings,
    stream: Stream,
    smaller: TokenGrid,
    side: int,
    draws: Draws,
    *,
    by_number: bool = False,
    left: float = 1.0,
) -> WindowPlan | Skipped | None:
    """The plan of a layer in which all keys near a query stay.

    Args:
        smaller: the grid of the keys that would be kept without a window.
        side: of the box of exact keys around each tile of queries, in tokens.
        by_number: see ``LayerTokens``.
        left: the share of the queries that merging is to leave, see ``fit_axes``.

    None where windows would keep more than ``max_tokens`` or all tokens.
    """
    grid = stream.grid
    device = draws.device.type
    asked_for = by_number or settings.local_window is not None
    least = 0 if asked_for else LEAST_FOR_WINDOWS.get(device, 0)
    if grid.tokens < least:
        return Skipped(
            f"{grid.tokens} tokens are too few for local windows to pay on a GPU without Triton; "
            f"with a size as local_window they are reduced"
        )
    axes = fit_axes(grid, side, 1 if by_number else QUERIES_AT_ONCE.get(device, 1), left)
    temporal_factor = grid.frames / smaller.frames
    factor = sqrt(grid.height * grid.width / (smaller.height * smaller.width))
    sets = list_key_sets(axes, factor, temporal_factor)
    anywhere = KeySet(("all", "all", "all"), min(OF_OTHERS, factor**2) * temporal_factor)
    of_each = (*sets, anywhere) if stream.others else sets
    count = DRAWS if settings.groups_queries else 1
    numbers, drawn = draw_keys(axes, stream.before, of_each, draws, count)
    of_picture = drawn[: len(sets)]
    kept = sum(keys.window for keys in of_picture)
    if kept >= grid.tokens or (settings.max_tokens and kept > settings.max_tokens):
        return None
    of_others = drawn[-1] if stream.others else None
    return WindowPlan(stream, axes, numbers, of_picture, of_others)
