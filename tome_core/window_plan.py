"""The plan of attention with local windows: which keys are drawn, and which tiles read them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from .attention_kernels import find_masked, make_bias
from .cell_sizes import count_sizes, list_log_sizes, order_by_size
from .grid import TokenGrid
from .local_window import LocalWindow
from .streams import Stream


@dataclass(frozen=True, eq=False)
class WindowPlan:
    """Keys near a tile of queries are whole, one drawn key stands for each cell beyond.

    The kept keys are drawn several times, and not all queries read the same draw, so that not all
    have the same error: each tile reads another one, and within a tile each head. Where the first
    head reads draw s, the next one reads draw s + 1, and after the last draw comes the first. All
    tokens that are not of the picture are read by every query. Their own queries read the draws
    from the first one on, for the whole picture.

    Args:
        stream: the sequence that attention reads.
        smaller: the grid of the kept tokens.
        kept: (S, M) int64, their numbers within the picture, for each draw.
        order: (T,) int64, the tiles in random order; they are dealt out to the S draws.
        window: the tiles and the boxes around them.

    Keys get their weights where attention is computed, so there are no ``sizes`` to be added.
    """

    stream: Stream
    smaller: TokenGrid
    kept: Tensor
    order: Tensor
    window: LocalWindow

    groups = 1
    sizes = None

    @property
    def slots(self) -> int:
        """Keys that a query reads, the mean over all queries."""
        window = self.window
        of_tile = window.near.shape[1] + window.cells.shape[1]
        share = self.stream.grid.tokens / self.stream.length
        return round(share * of_tile) + self.smaller.tokens + self.stream.others

    @cached_property
    def numbers(self) -> Tensor:
        """The keys of each draw, within the stream: first those that are not of the picture.

        Then come those of the smallest cells, and so on: (S, others + M) int64.
        """
        order = order_by_size(self.stream.grid, self.smaller, self.kept.device)
        kept = self.kept if order is None else self.kept.index_select(1, order)
        others = self.window.others.expand(len(kept), -1)
        return torch.cat([others, kept + self.stream.before], dim=1)

    @property
    def spans_of_size(self) -> tuple[tuple[int, int, int], ...]:
        """For each size of a cell, where its keys begin and end in ``numbers``, and that size."""
        others = self.stream.others
        spans, start = [(0, others, 1)] if others else [], others
        for size, count in count_sizes(self.stream.grid, self.smaller):
            spans.append((start, start + count, size))
            start += count
        return tuple(spans)

    @property
    def common_size(self) -> int:
        """The size that most cells have."""
        return max(count_sizes(self.stream.grid, self.smaller), key=lambda pair: pair[1])[0]

    @property
    def boxes(self) -> tuple[Tensor, Tensor]:
        """The tokens of each tile in ``order``, (T, Q), and those of its box, (T, K). int64."""
        queries, near = self.window.queries, self.window.near
        return queries.index_select(0, self.order), near.index_select(0, self.order)

    def list_drawn(self, draw: int, heads: int) -> Tensor:
        """The keys, as ``numbers`` has them, that each head reads where the first reads ``draw``.

        (H, others + M) int64; (1, others + M) where all heads read the same keys.
        """
        draws = number_draws(len(self.kept), heads, self.kept.device)
        return self.numbers.index_select(0, draws[draw])

    def list_drawn_inside(self, dtype: torch.dtype, heads: int) -> tuple[Tensor, Tensor]:
        """The drawn keys of each head that may lie in the box of each tile in ``order``.

        With what is added to their scores: the log of their size as a multiple of
        ``common_size``, or what hides the keys that lie beyond. (H, T, C) int64, and (H, T, C) of
        ``dtype``; (1, T, C) where all heads read the same keys.
        """
        order, device = self.order, self.order.device
        cells = self.window.cells.index_select(0, order)
        draws = _number_draws_of_tiles(len(order), len(self.kept), heads, device)
        numbers = self.kept[draws, cells]
        inside = self.window.find_inside(order, numbers)
        sizes = list_log_sizes(self.stream.grid, self.smaller, self.common_size, dtype, device)
        bias = make_bias(numbers.shape[:-1], numbers.shape[-1], dtype, device)
        torch.where(inside, sizes[cells], _make_masked(dtype, device), out=bias)
        return numbers + self.stream.before, bias

    def deal(self, of_tiles: Tensor) -> tuple[Tensor, ...]:
        """What is given for each tile in ``order``, for each draw that they read.

        (..., T, n) -> S views, each (..., T / S, n).
        """
        return of_tiles.tensor_split(len(self.kept), dim=-2)


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def number_draws(draws: int, heads: int, device: torch.device) -> Tensor:
    """Which draw each head reads, for each draw that the first one reads.

    (S, H) int64; (1, 1) where there is one draw.
    """
    head = torch.arange(heads if draws > 1 else 1, device=device)
    return (torch.arange(draws, device=device)[:, None] + head) % draws


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def _number_draws_of_tiles(tiles: int, draws: int, heads: int, device: torch.device) -> Tensor:
    """Which draw each head reads in each tile, as ``WindowPlan.deal`` deals them out.

    (H or 1, T, 1) int64.
    """
    dealt = torch.arange(tiles, device=device).tensor_split(draws)
    firsts = torch.cat([torch.full_like(each, draw) for draw, each in enumerate(dealt)])
    return number_draws(draws, heads, device)[firsts].T[..., None].contiguous()


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def _make_masked(dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.full((1, 1), find_masked(dtype), dtype=dtype, device=device)
