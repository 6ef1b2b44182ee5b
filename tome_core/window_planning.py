"""From settings to the plan of one layer with local windows."""

from __future__ import annotations

from math import prod

from torch import Tensor

from .cells import list_cells
from .downsample_settings import DownsampleSettings
from .draws import Draws
from .grid import TokenGrid
from .local_window import LocalWindow, fit_box, place_windows
from .plan import Skipped
from .streams import Stream
from .tokens import number_between
from .window_plan import WindowPlan

MOST_DRAWS = 16
"""Of the keys beyond local windows. Each draw is gathered and called by itself. More than these
were no nearer to plain (measured with a prototype on the small trained Flux, 64 x 64 tokens, factor
4, 8 steps, 4 pictures). One for all tiles loses 0 to 2 dB, see docs/tried.md."""

LEAST_FOR_WINDOWS = {"cuda": 6400}
"""By device: with fewer tokens local windows gain nothing by the estimates of docs/speed.md, since
they start more than a hundred kernels: at 4,096 tokens a block is 0.93x and 0.69x as fast, or 1.00x
and 0.97x where launches hide. Where the user asks for a window, it is there all the same."""


def plan_windows(
    settings: DownsampleSettings, stream: Stream, smaller: TokenGrid, side: int, draws: Draws
) -> WindowPlan | Skipped | None:
    """The plan of a layer in which all keys near a query stay.

    Args:
        smaller: the grid of the kept tokens.
        side: of the box of exact keys around each tile of queries, in tokens.

    None where windows would keep more than ``max_tokens`` or all tokens.
    """
    grid = stream.grid
    box = fit_box(grid, side)
    if smaller.tokens + prod(box) > (settings.max_tokens or grid.tokens):
        return None
    least = LEAST_FOR_WINDOWS.get(draws.device.type, 0) if settings.local_window is None else 0
    if grid.tokens < least:
        return Skipped(
            f"{grid.tokens} tokens are too few for local windows to pay on a GPU, by an estimate; "
            f"with another local_window than auto the layer is reduced"
        )
    window = place_windows(stream, smaller, box, draws.device)
    count = _count_draws(grid, smaller, window) if settings.groups_queries else 1
    kept = list_cells(grid, smaller, count, draws.device).draw(draws)
    return WindowPlan(stream, smaller, kept, _order_tiles(window, draws), window)


def _order_tiles(window: LocalWindow, draws: Draws) -> Tensor:
    """The tiles in random order, all frames of one place together. (T,) int64.

    They come to read the same draw, mostly: errors that change from frame to frame would flicker.
    """
    places = window.tiles // window.tiles_in_time
    order = draws.draw_order(places)[:, None]  # (places, 1)
    return (order + places * number_between(0, window.tiles_in_time, draws.device)).flatten()


def _count_draws(grid: TokenGrid, smaller: TokenGrid, window: LocalWindow) -> int:
    """As many draws as a cell has tokens: together they are all tokens, each once."""
    return max(1, min(MOST_DRAWS, grid.tokens // smaller.tokens, window.tiles))
