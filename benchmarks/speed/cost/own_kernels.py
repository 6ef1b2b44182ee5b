"""Our own kernels on a stand-in for a GPU: operations that are counted and compute nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from token_merge.nodes.hooks import kernel_choice, merging_choice
from torch import Tensor
from torch.utils.flop_counter import flop_registry

ATTEND, MERGE = "attend_by_number", "merge_by_number"


def _compute_nothing(written: list[Tensor], read: list[Tensor], flops: int) -> None:
    """written, read: everything that the kernel writes and reads."""
    for each in written:
        each.zero_()


attend, merge = (
    torch.library.custom_op(
        f"token_merge_benchmark::{name}", _compute_nothing, mutates_args=("written",)
    )
    for name in (ATTEND, MERGE)
)
"""A kernel for attention, and one that compares, numbers or averages tokens."""


def _give_no_numbers(*_: Any) -> None:
    return None


def _count_flops(written: list[Tensor], read: list[Tensor], flops: int, **_: Any) -> int:
    return flops


for _operation in (attend, merge):
    _operation.register_fake(_give_no_numbers)
    flop_registry[getattr(torch.ops.token_merge_benchmark, _operation._name)] = _count_flops


@contextmanager
def in_place_of_triton() -> Iterator[None]:
    """While it lasts, GPUs run our kernels as far as Triton can be imported."""
    try:
        merging_choice._import_kernels()
    except ImportError:
        yield
        return
    with _attention_counted(), _merging_counted():
        yield


@contextmanager
def _attention_counted() -> Iterator[None]:
    kernel = kernel_choice._import_kernel()

    def count(
        out: Tensor,
        out_logs: Tensor | None,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        queries: Tensor,
        read: Tensor,
        blocks: Any,
        *_: float,
    ) -> None:
        tiles, of_tile = queries.shape
        pairs = tiles * _fill_blocks(of_tile, kernel.QUERIES) * blocks.logs.shape[1]
        written = [out] if out_logs is None else [out, out_logs]
        tables = [queries, read, blocks.starts, blocks.logs]
        attend(written, [q, k, v, *tables], _count_pairs(q, pairs))

    def count_merged(
        out: Tensor,
        out_logs: Tensor,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        plan: Any,
        merged: Any,
        _: float,
    ) -> None:
        far = kernel.list_far_blocks(plan, kernel.KEYS)
        strips = merged.slots.shape[1]
        pairs = strips * _fill_blocks(merged.kept.shape[2], kernel.QUERIES) * far.logs.shape[1]
        tables = [plan.owned, merged.kept, merged.slots, plan.read, far.starts, far.logs]
        attend([out], [out_logs, q, k, v, *tables], _count_pairs(q, pairs))

    with (
        patch.object(kernel_choice, "explain_lack", _explain_lack),
        patch.object(kernel, "_attend", count),
        patch.object(kernel, "_attend_merged", count_merged),
    ):
        yield


@contextmanager
def _merging_counted() -> Iterator[None]:
    module = merging_choice._import_kernels()

    def count_nearest(levels: Tensor, nearest: Tensor, metric: Tensor, grid: Any, dst: Any) -> None:
        tiling, nearby = module.find_nearby(grid, dst)
        tokens = _fill_blocks(tiling.height * tiling.width, module.TOKENS)
        compared = tokens * _fill_blocks(nearby.shape[1], module.DST)
        flops = 2 * len(metric) * tiling.tiles * compared * metric.shape[2]
        norms = torch.linalg.vector_norm(metric, dim=-1, dtype=torch.float32)
        merge([levels, nearest], [metric, norms, nearby, dst.flat], flops)

    def count_slots(plan: Any, levels: Tensor, nearest: Tensor, dst: Any) -> None:
        written = [plan.rows, plan.chosen, plan.sizes, plan.heads, plan.links]
        merge(written, [levels, nearest, dst.flat], 0)

    def count_averages(out: Tensor, x: Tensor, plan: Any) -> None:
        merge([out], [x, plan.chosen, plan.sizes, plan.heads, plan.links], 0)

    def count_strips(kept: Tensor, slots: Tensor, metric: Tensor, strips: Any) -> None:
        flops = 2 * slots.numel() * metric.shape[2] * strips.places.shape[1]
        merge([kept, slots], [metric, strips.numbers, strips.places], flops)

    with (
        patch.object(merging_choice, "explain_lack", _explain_lack),
        patch.object(merging_choice, "explain_lack_of_queries", _explain_lack),
        patch.object(merging_choice._import_kernel_of_queries(), "_merge_strips", count_strips),
        patch.object(module, "_find_nearest", count_nearest),
        patch.object(module, "_number_slots", count_slots),
        patch.object(module, "_average_slots", count_averages),
    ):
        yield


def _count_pairs(q: Tensor, pairs: int) -> int:
    """FLOPs of attention. pairs: computed, of one head of one image."""
    images, heads, _, channels = q.shape
    return 4 * images * heads * pairs * channels


def _fill_blocks(count: int, block: int) -> int:
    """Blocks that are not full are computed like full ones."""
    return count + -count % block


def _explain_lack(device: torch.device, *_: Any) -> str:
    return "" if device.type == "cuda" else "there is no GPU"
