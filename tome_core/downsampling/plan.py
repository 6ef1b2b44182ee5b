"""Downsampling of keys and values on the token grid, ToDo (arXiv 2402.13573).

These plans have no way back: all queries stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from ..cells import list_cells, pick_nearest
from ..constants import constant
from ..grid import Stream, TokenGrid
from ..tokens import join_heads, split_heads, take_for_groups
from .settings import DownsampleMethod


@dataclass(frozen=True)
class ChoosingPlan:
    """One token of each cell is kept, and all tokens that are not of the picture.

    A plan is kept for later calls. smaller: the grid of the kept tokens. chosen: (G, M) int64, the
    numbers of all tokens that each query group reads.
    """

    stream: Stream
    smaller: TokenGrid
    chosen: Tensor

    @property
    def keys_read(self) -> int:
        return self.chosen.shape[1]

    @property
    def groups(self) -> int:
        return self.chosen.shape[0]

    @property
    def sizes(self) -> Tensor | None:
        if not self.stream.others:
            return None  # the published method: all keys weigh alike
        return size_keys(self.stream, self.smaller, self.chosen.device)

    def choose(self, x: Tensor) -> Tensor:
        return take_for_groups(x, self.chosen)

    merge = choose


@constant
def size_keys(stream: Stream, smaller: TokenGrid, device: torch.device) -> Tensor:
    """Tokens that each key of a stream stands for, (1, M + others) int64."""
    return stream.extend_sizes(list_cells(stream.grid, smaller, 1, device).sizes[None])


@dataclass(frozen=True)
class InterpolationPlan(ChoosingPlan):
    """Values are means or maxima of the picture; keys that may not be averaged are chosen.

    mode: one that computes values, such as "bilinear".
    """

    mode: DownsampleMethod

    def merge(self, x: Tensor) -> Tensor:
        if x.ndim == 4:
            return split_heads(self.merge(join_heads(x)), x.shape[1])
        stream = self.stream
        before, picture, after = x.split([stream.before, stream.grid.tokens, stream.after], 1)
        resampled = resample(picture, stream.grid, self.smaller, self.mode)
        return torch.cat([before, resampled, after], dim=1) if stream.others else resampled


def resample(x: Tensor, grid: TokenGrid, smaller: TokenGrid, mode: DownsampleMethod) -> Tensor:
    """ToDo sec. 3.2 with its published interpolation modes. (B, N, C) -> (B, M, C).

    "max" keeps the largest value of each cell, per channel. Frames are chosen, never mixed.
    """
    size = (smaller.height, smaller.width)
    fewer_frames = replace(grid, frames=smaller.frames)
    if fewer_frames != grid:
        x = x.index_select(1, pick_nearest(grid, fewer_frames, x.device, centred=True))
    image = fewer_frames.unflatten(x)  # (B·F', C, H, W)
    if mode == "max":
        return smaller.flatten(F.adaptive_max_pool2d(image, size))
    return smaller.flatten(F.interpolate(image, size=size, mode=mode))
