"""Calls of our own kernels that merge tokens among neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
import triton
from torch import Tensor

from ...tome_core.constants import constant
from ...tome_core.draws import Draws
from ...tome_core.grid import Stream, TokenGrid
from ...tome_core.merging import Destinations, MergePlan, SlotPlan, choose_strided
from ...tome_core.merging.global_matching import LEAST_NORM, shuffle
from ...tome_core.merging.local_matching import find_nearby, match_in_tiles
from ...tome_core.merging.tiles import Tiling
from ...tome_core.tokens import asks_for_gradients, number_first
from . import merging_triton as kernels
from .shapes import MATCHED_CHANNELS, MATCHED_TOKENS, choose_dst_block, count_in_units

AT_ONCE = 4096
"""So many tokens of an image are numbered at once."""


@dataclass(frozen=True, eq=False)
class LinkedPlan(SlotPlan):
    """As ``MergePlan``, with what was merged into each slot as a linked list.

    Args:
        heads: (B, M) int32, the first token that was merged into each slot, -1: none.
        links: (B, N) int32, the next one behind each token that was merged, -1: none.
    """

    rows: Tensor
    chosen: Tensor
    sizes: Tensor
    heads: Tensor
    links: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.links.shape[0], self.links.shape[1]

    @cached_property
    def assign(self) -> Tensor:  # type: ignore[override]
        images, slots = self.chosen.shape
        return self.rows.view(self.shape) - number_first(images, slots, self.rows.device)

    @cached_property
    def unlinked(self) -> MergePlan:
        """The same without the lists."""
        return MergePlan(self.assign, self.chosen)

    def merge(self, x: Tensor) -> Tensor:
        if x.ndim != 3 or x.stride(2) != 1 or asks_for_gradients([x]):
            return self.unlinked.merge(x)
        out = x.new_empty(x.shape[0], self.keys_read, x.shape[2])
        _average_slots(out, x, self)
        return out

    def extend(self, stream: Stream) -> SlotPlan:
        return self.unlinked.extend(stream) if stream.others else self


def match_local(metric: Tensor, grid: TokenGrid, dst: Destinations, merged: int) -> LinkedPlan:
    """As the function of this name in ``tome_core``."""
    images, tokens, _ = metric.shape
    levels = torch.empty(images, tokens, dtype=torch.int32, device=metric.device)
    nearest, links = torch.empty_like(levels), torch.empty_like(levels)
    _find_nearest(levels, nearest, metric, grid, dst)
    slots = max(tokens - merged, dst.count)
    heads = levels.new_empty(images, slots)
    rows = levels.new_empty(levels.numel(), dtype=torch.int64)
    chosen, sizes = (torch.empty_like(heads, dtype=torch.int64) for _ in range(2))
    plan = LinkedPlan(rows, chosen, sizes, heads, links)
    _number_slots(plan, levels, nearest, dst)
    return plan


def _find_nearest(
    levels: Tensor, nearest: Tensor, metric: Tensor, grid: TokenGrid, dst: Destinations
) -> None:
    """Write how similar each token is to the most similar dst nearby, and which one that is.

    levels, nearest: (B, N) int32. metric: (B, N, C).
    """
    unit, (*strides, channels) = count_in_units(*metric.stride()[:2], metric.shape[2])
    tiling, nearby = find_nearby(grid, *dst.cells)  # (tiles, K)
    numbers = _number_tokens(tiling, metric.device)  # (tiles, T)
    norms = torch.linalg.vector_norm(metric, dim=-1, dtype=torch.float32)  # (B, N)
    blocks = tiling.tiles * triton.cdiv(numbers.shape[1], MATCHED_TOKENS)
    # Unlike PyTorch, Triton does not look where its tensors are.
    with torch.cuda.device_of(metric):
        kernels.find_nearest[blocks, len(metric)](
            levels,
            nearest,
            metric,
            norms,
            numbers,
            nearby,
            dst.flat,
            *strides,
            metric.shape[1],
            numbers.shape[1],
            nearby.shape[1],
            channels,
            LEAST_NORM,
            UNIT=unit,
            TOKENS=MATCHED_TOKENS,
            DST=choose_dst_block(metric.device),
            CHANNELS=MATCHED_CHANNELS,
            num_warps=4,
            num_stages=3,
            enable_fp_fusion=True,
        )


@constant
def _number_tokens(tiling: Tiling, device: torch.device) -> Tensor:
    """The tokens of each tile, -1 for padding. (tiles, T) int32."""
    return tiling.number_tokens(device).int()


def _number_slots(plan: LinkedPlan, levels: Tensor, nearest: Tensor, dst: Destinations) -> None:
    """Write the plan: the tokens of highest level are merged into their nearest dst."""
    images, tokens = levels.shape
    with torch.cuda.device_of(levels):
        kernels.number_slots[(images,)](
            plan.rows,
            plan.chosen,
            plan.sizes,
            plan.heads,
            plan.links,
            levels,
            nearest,
            dst.flat,
            shuffle(tokens, levels.device)[0],
            tokens,
            dst.count,
            plan.keys_read,
            TOKENS=AT_ONCE,
            num_warps=32,
            enable_fp_fusion=True,
        )


def _average_slots(out: Tensor, x: Tensor, plan: LinkedPlan) -> None:
    """Write the mean of each slot. out: (B, M, C). x: (B, N, C)."""
    images, slots, channels = out.shape
    unit, (*strides, counted) = count_in_units(*x.stride()[:2], channels)
    with torch.cuda.device_of(x):
        kernels.average_slots[slots, images](
            out,
            x,
            plan.chosen,
            plan.sizes,
            plan.heads,
            plan.links,
            *strides,
            x.shape[1],
            slots,
            counted,
            UNIT=unit,
            CHANNELS=triton.next_power_of_2(channels),
            num_warps=2,
            enable_fp_fusion=True,
        )


def try_out(device: torch.device, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
    """What becomes of the tokens of a small picture, and what has to."""
    grid, draws = TokenGrid(20, 24), Draws((0,), device)
    generator = torch.Generator(device).manual_seed(0)
    x = torch.randn(2, grid.tokens, 80, generator=generator, device=device, dtype=dtype)
    given = grid, choose_strided(grid, 2, 2, draws, device), grid.tokens // 3
    found, known = match_local(x, *given), match_in_tiles(x.float(), *given)
    yield found.chosen.gather(1, found.assign), known.chosen.gather(1, known.assign)
    yield found.sizes, found.unlinked.sizes
    yield found.merge(x), found.unlinked.merge(x)
