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

    def count(
        out: Tensor,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        queries: Tensor,
        read: Tensor,
        blocks: Any,
        *others: Any,
    ) -> None:
        """Blocks that are not full are computed like full ones."""
        tiles, of_tile = queries.shape
        computed = tiles * (of_tile + -of_tile % kernel.QUERIES)
        images, heads, _, channels = q.shape
        flops = 4 * images * heads * computed * blocks.logs.shape[1] * channels
        given = [q, k, v, queries, read, blocks.starts, blocks.logs]
        torch.ops.token_merge_benchmark.attend_by_number(out, given, flops)

    def explain_lack(device: torch.device, *_: Any) -> str:
        return "" if device.type == "cuda" else "there is no GPU"

    with (
        patch.object(kernel_choice, "explain_lack", explain_lack),
        patch.object(kernel, "_attend", count),
    ):
        yield
