"""Calls of our own kernels: attention in local windows, and to keys that weigh several tokens."""

from __future__ import annotations

from functools import lru_cache

import torch
import triton
from torch import Tensor

from ...tome_core.key_blocks import (
    KeyBlocks,
    list_blocks_of_others,
    list_blocks_of_picture,
    list_far_blocks,
    list_near_blocks,
    list_weighed_blocks,
)
from ...tome_core.merged_queries import MergedQueries
from ...tome_core.tiled_axis import Axes
from ...tome_core.window_plan import WindowPlan, number_queries
from . import triton_attention_kernels

QUERIES = KEYS = 64
"""Of a block; the fastest of several choices on an H100, as are the stages."""

STAGES_OF_WINDOWS, STAGES_IN_ORDER = 2, 3
"""How many blocks are on their way from memory at once: where tiles share keys, and where all
keys are read in their order."""


def attend_windows(plan: WindowPlan, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """As the function of this name in ``tome_core``, without a mask and in half precision."""
    out, stages = _make_output(q), STAGES_OF_WINDOWS
    if plan.merged:
        out_logs = q.new_empty(q.shape[:3], dtype=torch.float32)
        near = list_near_blocks(plan, KEYS)
        _attend(out, out_logs, q, k, v, plan.owned, plan.read, near, scale, stages)
        _attend_merged(out, out_logs, q, k, v, plan, plan.merged, scale)
    else:
        blocks = list_blocks_of_picture(plan, KEYS)
        _attend(out, None, q, k, v, plan.owned, plan.read, blocks, scale, stages)
    if plan.of_others:
        blocks = list_blocks_of_others(plan, KEYS)
        _attend(out, None, q, k, v, plan.owned_by_others, plan.read, blocks, scale, stages)
    return out


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def _number_tiles(axes: Axes, before: int, device: torch.device) -> Tensor:
    """The tokens of each tile. (T, Q) int32."""
    return number_queries(axes, before, device)[0].int()


def attend_weighed(q: Tensor, k: Tensor, v: Tensor, sizes: Tensor, scale: float) -> Tensor:
    """Attention to keys that stand for several tokens: log s is added to their scores.

    ToMe (arXiv 2210.09461), eq. 1. q: (B, H, Nq, D). k, v: (B, G, Nk, D), with H heads or fewer.
    sizes: (B or 1, Nk). Returns (B, H, Nq, D).
    """
    out = _make_output(q)
    queries, read = (_number_all(x.shape[2], q.device) for x in (q, k))
    blocks = list_weighed_blocks(sizes, KEYS)
    _attend(out, None, q, k, v, queries, read, blocks, scale, STAGES_IN_ORDER)
    return out


@lru_cache(maxsize=64)
@torch.inference_mode(False)
def _number_all(tokens: int, device: torch.device) -> Tensor:
    """(1, tokens) int32."""
    return torch.arange(tokens, dtype=torch.int32, device=device)[None]


def _make_output(q: Tensor) -> Tensor:
    """(B, H, N, D); in memory heads lie within tokens, as models want to have them."""
    return q.new_empty(q.shape[0], q.shape[2], q.shape[1], q.shape[3]).transpose(1, 2)


def _attend(
    out: Tensor,
    out_logs: Tensor | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    queries: Tensor,
    read: Tensor,
    blocks: KeyBlocks,
    scale: float,
    stages: int,
) -> None:
    """Write the attention of some queries.

    Args:
        out, q: (B, H, Nq, D). k, v: (B, G, Nk, D). Channels follow each other.
        out_logs: (B, H, Nq) float32, for the base 2 log of what outputs were divided by; or None.
        queries: (T, Q) int32, the numbers of those of each tile, -1: none.
        read: (S, N) int32, numbers of keys; the heads take the S rows in turn.
        blocks: of T tiles.
    """
    tiles, of_tile = queries.shape
    images_of_logs = blocks.logs.stride(0) if len(blocks.logs) > 1 else 0
    # Unlike PyTorch, Triton does not look where its tensors are.
    with torch.cuda.device_of(q):
        triton_attention_kernels.attend[tiles * triton.cdiv(of_tile, QUERIES), q.shape[1], len(q)](
            out,
            out_logs,
            q,
            k,
            v,
            queries,
            read,
            blocks.starts,
            blocks.logs,
            *_list_strides(out, q, k, v),
            images_of_logs,
            q.shape[2],
            of_tile,
            blocks.starts.shape[1],
            *read.shape,
            q.shape[1] // k.shape[1],
            scale,
            **_list_constants(q),
            num_warps=4,
            num_stages=stages,
        )


def _attend_merged(
    out: Tensor,
    out_logs: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    plan: WindowPlan,
    merged: MergedQueries,
    scale: float,
) -> None:
    """Join what the picture's merged queries find in the far keys to what ``out`` holds."""
    blocks = list_far_blocks(plan, KEYS)
    images, strips, of_strip = merged.slots.shape
    assert merged.kept.shape[2] <= QUERIES
    with torch.cuda.device_of(q):
        triton_attention_kernels.attend_merged[strips, q.shape[1], images](
            out,
            out_logs,
            q,
            k,
            v,
            _number_tiles(plan.axes, plan.stream.before, q.device),
            plan.owned,
            merged.kept,
            merged.slots,
            plan.read,
            blocks.starts,
            blocks.logs,
            *_list_strides(out, q, k, v),
            q.shape[2],
            strips // len(blocks.starts),
            of_strip,
            merged.kept.shape[2],
            merged.kept.stride(1),
            blocks.starts.shape[1],
            *plan.read.shape,
            q.shape[1] // k.shape[1],
            scale,
            **_list_constants(q),
            num_warps=4,
            num_stages=STAGES_OF_WINDOWS,
        )


def _list_strides(*tensors: Tensor) -> list[int]:
    """From image to image, head to head and token to token, of each."""
    return [side for each in tensors for side in each.stride()[:3]]


def _list_constants(q: Tensor) -> dict[str, int]:
    """What a kernel is compiled for."""
    padded = max(16, triton.next_power_of_2(q.shape[3]))
    return {"CHANNELS": q.shape[3], "PADDED": padded, "QUERIES": QUERIES, "KEYS": KEYS}
