"""Our own kernel on a stand-in for a GPU: one operation that is counted and computes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from token_merge.nodes.hooks import kernel_choice
from torch import Tensor
from torch.utils.flop_counter import flop_registry

NAME = "attend_by_number"


@torch.library.custom_op(f"token_merge_benchmark::{NAME}", mutates_args=("out",))
def attend(out: Tensor, read: list[Tensor], flops: int) -> None:
    """read: everything that the kernel reads."""
    out.zero_()


@attend.register_fake
def _attend_without_numbers(*_: Any) -> None:
    return None


def _count_flops(out: Tensor, read: list[Tensor], flops: int, **_: Any) -> int:
    return flops


flop_registry[torch.ops.token_merge_benchmark.attend_by_number] = _count_flops


@contextmanager
def in_place_of_triton() -> Iterator[None]:
    """While it lasts, GPUs run our kernel as far as Triton can be imported."""
    try:
        kernel = kernel_choice._import_kernel()
    except ImportError:
        yield
        return

    def note(out: Tensor, q: Tensor, k: Tensor, v: Tensor, pairs: int, *read: Tensor) -> None:
        """pairs: computed, of one head of one image."""
        images, heads, _, channels = q.shape
        flops = 4 * images * heads * pairs * channels
        torch.ops.token_merge_benchmark.attend_by_number(out, [q, k, v, *read], flops)

    def fill_blocks(queries: int) -> int:
        """Blocks that are not full are computed like full ones."""
        return queries + -queries % kernel.QUERIES

    def count(
        out: Tensor,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        queries: Tensor,
        read: Tensor,
        blocks: Any,
        *_: Any,
    ) -> None:
        tiles, of_tile = queries.shape
        pairs = tiles * fill_blocks(of_tile) * blocks.logs.shape[1]
        note(out, q, k, v, pairs, queries, read, blocks.starts, blocks.logs)

    def count_merged(
        out: Tensor, q: Tensor, k: Tensor, v: Tensor, plan: Any, merged: Any, *_: Any
    ) -> None:
        far, near = (
            find(plan, kernel.KEYS) for find in (kernel.list_far_blocks, kernel.list_near_blocks)
        )
        _, strips, of_strip = merged.slots.shape
        of_far = fill_blocks(merged.kept.shape[2]) * far.logs.shape[1]
        of_near = fill_blocks(of_strip) * near.logs.shape[1]
        tables = plan.owned, merged.kept, merged.slots, plan.read
        of_blocks = far.starts, far.logs, near.starts, near.logs
        note(out, q, k, v, strips * (of_far + of_near), *tables, *of_blocks)

    def explain_lack(device: torch.device, *_: Any) -> str:
        return "" if device.type == "cuda" else "there is no GPU"

    with (
        patch.object(kernel_choice, "explain_lack", explain_lack),
        patch.object(kernel, "_attend", count),
        patch.object(kernel, "_attend_merged", count_merged),
    ):
        yield
