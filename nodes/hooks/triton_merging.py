"""Calls of our own kernels that merge tokens among neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
import triton
from torch import Tensor

from ...tome_core.global_matching import LEAST_NORM, shuffle
from ...tome_core.grid import TokenGrid
from ...tome_core.local_matching import find_nearby
from ...tome_core.partition import Destinations
from ...tome_core.plan import MergePlan, MergingPlan
from ...tome_core.streams import Stream
from ...tome_core.tiles import Tiling
from ...tome_core.tokens import number_first, take_tokens
from . import triton_merging_kernels as kernels

TOKENS, DST, CHANNELS = 128, 128, 64
"""Of a block that is compared; the fastest of twelve choices on an H200."""

AT_ONCE = 4096
"""Tokens of an image that are numbered at once."""


@dataclass(frozen=True, eq=False)
class LinkedPlan:
    """As ``MergePlan``, with what was merged into each slot as a linked list.

    Args:
        rows: (B·N,) int64, the slot of each token, counted through the whole batch.
        chosen: (B, M) int64, the token that stands for each slot.
        sizes: (B, M) int64, tokens of each slot.
        heads: (B, M) int32, the first token that was merged into each slot, -1: none.
        links: (B, N) int32, the next one behind each token that was merged, -1: none.
    """

    rows: Tensor
    chosen: Tensor
    sizes: Tensor
    heads: Tensor
    links: Tensor

    groups = 1
    window = None

    @cached_property
    def plan(self) -> MergePlan:
        """The same without the lists."""
        images, slots = self.chosen.shape
        assign = self.rows.view(self.shape) - number_first(images, slots, self.rows.device)
        return MergePlan(assign, self.chosen)

    @property
    def slots(self) -> int:
        return self.chosen.shape[1]

    @property
    def queries_left(self) -> int:
        return self.slots

    @property
    def shape(self) -> tuple[int, int]:
        images, tokens = self.links.shape
        return images, tokens

    def choose(self, x: Tensor) -> Tensor:
        return take_tokens(x, self.chosen)

    def merge(self, x: Tensor) -> Tensor:
        """Mean of each slot, as that of ``MergePlan``."""
        if x.ndim != 3 or x.stride(2) != 1 or (torch.is_grad_enabled() and x.requires_grad):
            return self.plan.merge(x)
        out = x.new_empty(x.shape[0], self.slots, x.shape[2])
        _average_slots(out, x, self)
        return out

    def unmerge(self, y: Tensor) -> Tensor:
        if y.ndim == 4:
            return self.plan.unmerge(y)
        return y.flatten(0, 1).index_select(0, self.rows).unflatten(0, self.shape)

    def extend(self, stream: Stream) -> MergingPlan:
        return self.plan.extend(stream) if stream.others else self


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
    tiling, nearby = find_nearby(grid, dst)  # (tiles, K)
    numbers = _number_tokens(tiling, metric.device)  # (tiles, T)
    norms = torch.linalg.vector_norm(metric, dim=-1, dtype=torch.float32)  # (B, N)
    blocks = tiling.tiles * triton.cdiv(numbers.shape[1], TOKENS)
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
            *metric.stride()[:2],
            metric.shape[1],
            numbers.shape[1],
            nearby.shape[1],
            metric.shape[2],
            LEAST_NORM,
            TOKENS=TOKENS,
            DST=DST,
            CHANNELS=CHANNELS,
            num_warps=4,
            num_stages=3,
        )


@lru_cache(maxsize=32)
@torch.inference_mode(False)
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
            plan.slots,
            TOKENS=AT_ONCE,
            num_warps=32,
        )


def _average_slots(out: Tensor, x: Tensor, plan: LinkedPlan) -> None:
    """Write the mean of each slot. out: (B, M, C). x: (B, N, C)."""
    images, slots, channels = out.shape
    with torch.cuda.device_of(x):
        kernels.average_slots[slots, images](
            out,
            x,
            plan.chosen,
            plan.sizes,
            plan.heads,
            plan.links,
            *x.stride()[:2],
            x.shape[1],
            slots,
            channels,
            CHANNELS=triton.next_power_of_2(channels),
            num_warps=2,
        )
