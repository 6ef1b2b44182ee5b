"""From settings to the plan of one layer whose queries read all keys near them."""

from __future__ import annotations

from math import sqrt

import torch

from ..constants import constant
from ..draws import Draws
from ..grid import Stream, TokenGrid
from ..layer import Layer
from ..plan import Skipped
from ..settings import Settings
from .geometry import fit_axes
from .near_and_far_keys import KeySet, list_key_sets
from .plan import WindowGeometry, WindowPlan, make_geometry

DRAWS = 8
"""The heads of a layer read so many draws, one head after the other."""

OF_OTHERS = 4.0
"""Queries that are not of the picture, those of the prompt for example, read one of so many of its
keys, as without a window at factor 2. With one of 16, the error of pictures is 2.2 dB larger at
factor 4 (small trained Flux, 64 x 64 tokens, 8 steps, 8 pictures). Little would be saved: there are
few such queries."""

LEAST_FOR_WINDOWS = {"cuda": 6400}
"""The key is the device: with fewer tokens local windows gain nothing there without a kernel of our
own, since more than 100 kernels are started. Where the user asks for a window, it is there all the
same."""

QUERIES_AT_ONCE = {"cuda": 128}
"""The key is the device. PyTorch's fastest kernel computes so many queries at once there, whether
there are as many or not. (FlashAttention 2 does with up to 128 channels.)"""


def plan_windows(
    settings: Settings, layer: Layer, smaller: TokenGrid, draws: Draws, kept_share: float = 1.0
) -> WindowPlan | Skipped | None:
    """The plan of a layer in which all keys near a query stay.

    Args:
        layer: has a local window.
        smaller: the grid of the keys that would be kept without a window.
        kept_share: of the queries, how many merging is to leave.

    None where windows would keep more than ``max_tokens`` or all tokens.
    """
    stream, device = layer.stream, layer.device
    # A kernel that reads keys where they lie takes tiles of any size, and is one kernel.
    slow = layer.why_no_window_kernel()
    asked_for = settings.local_window is not None or settings.reduce_small_layers
    tokens = stream.grid.tokens
    if slow and not asked_for and tokens < LEAST_FOR_WINDOWS.get(device.type, 0):
        return Skipped(
            f"{tokens:,} tokens are too few to gain without our kernel ({slow}); "
            f"to reduce them, set {settings.window_input} to a size"
        )
    # With reduce_small_layers pictures must not depend on the device, nor may the tiles.
    higher = slow and not settings.reduce_small_layers
    at_once = QUERIES_AT_ONCE.get(device.type, 1) if higher else 1
    geometry = fit_windows(stream, smaller, layer.local_window, at_once, kept_share, device)
    if geometry.keys_read >= tokens or 0 < settings.max_tokens < geometry.keys_read:
        return None
    read = geometry.count_read(kept_share) / stream.length
    if not asked_for and (slower := layer.why_backend_is_faster(settings.kind, read)):
        return Skipped(slower)
    drawn = geometry.cells.draw(draws, DRAWS if settings.groups_queries else 1)
    return WindowPlan(geometry, drawn, precision=layer.find_precision())


@constant
def fit_windows(
    stream: Stream,
    smaller: TokenGrid,
    local_window: int,
    at_once: int,
    kept_share: float,
    device: torch.device,
) -> WindowGeometry:
    """The geometry in which as many far keys are drawn as ``smaller`` asks for.

    at_once: how many queries a kernel computes at once, see ``fit_axes``.
    """
    grid = stream.grid
    axes = fit_axes(grid, local_window, at_once, kept_share)
    temporal_factor = grid.frames / smaller.frames
    factor = sqrt(grid.height * grid.width / (smaller.height * smaller.width))
    sets = list_key_sets(axes, factor, temporal_factor)
    anywhere = KeySet(("all", "all", "all"), min(OF_OTHERS, factor**2) * temporal_factor)
    return make_geometry(stream, axes, (*sets, anywhere) if stream.others else sets, device)
