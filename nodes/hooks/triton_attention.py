"""Attention to keys that are named by number and have weights, in one kernel, written in Triton.

FlashAttention 2 (arXiv 2307.08691, algorithm 1) that reads keys and values where they lie, so that
none of those that several tiles of queries read is copied.
"""

from __future__ import annotations

from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...tome_core.key_blocks import (
    KeyBlocks,
    list_blocks_of_others,
    list_blocks_of_picture,
    list_weighed_blocks,
)
from ...tome_core.window_plan import WindowPlan

QUERIES = KEYS = 64
"""Of a block; the fastest of several choices on an H100, as are the stages."""

STAGES_OF_WINDOWS, STAGES_IN_ORDER = 2, 3
"""How many blocks are on their way from memory at once: where tiles share keys, and where all
keys are read in their order."""

LOG2_E = tl.constexpr(1.4426950408889634)


def attend_windows(plan: WindowPlan, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """As the function of this name in ``tome_core``, without a mask and in half precision."""
    out = _make_output(q)
    stages = STAGES_OF_WINDOWS
    blocks = list_blocks_of_picture(plan, KEYS)
    _attend(out, q, k, v, plan.owned, plan.read, blocks, scale, stages)
    if plan.of_others:
        blocks = list_blocks_of_others(plan, KEYS)
        _attend(out, q, k, v, plan.owned_by_others, plan.read, blocks, scale, stages)
    return out


def attend_weighed(q: Tensor, k: Tensor, v: Tensor, sizes: Tensor, scale: float) -> Tensor:
    """Attention to keys that stand for several tokens: log s is added to their scores.

    ToMe (arXiv 2210.09461), eq. 1. q: (B, H, Nq, D). k, v: (B, G, Nk, D), with H heads or fewer.
    sizes: (B or 1, Nk). Returns (B, H, Nq, D).
    """
    out = _make_output(q)
    queries, read = (_number_all(x.shape[2], q.device) for x in (q, k))
    _attend(out, q, k, v, queries, read, list_weighed_blocks(sizes, KEYS), scale, STAGES_IN_ORDER)
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
        queries: (T, Q) int32, the numbers of those of each tile, -1: none.
        read: (S, N) int32, numbers of keys; the heads take the S rows in turn.
        blocks: of T tiles.
    """
    tiles, of_tile = queries.shape
    images_of_logs = blocks.logs.stride(0) if len(blocks.logs) > 1 else 0
    # Unlike PyTorch, Triton does not look where its tensors are.
    with torch.cuda.device_of(q):
        _kernel[tiles * triton.cdiv(of_tile, QUERIES), q.shape[1], len(q)](
            out,
            q,
            k,
            v,
            queries,
            read,
            blocks.starts,
            blocks.logs,
            *out.stride()[:3],
            *q.stride()[:3],
            *k.stride()[:3],
            *v.stride()[:3],
            images_of_logs,
            of_tile,
            blocks.starts.shape[1],
            *read.shape,
            q.shape[1] // k.shape[1],
            scale,
            CHANNELS=q.shape[3],
            PADDED=max(16, triton.next_power_of_2(q.shape[3])),
            QUERIES=QUERIES,
            KEYS=KEYS,
            num_warps=4,
            num_stages=stages,
        )


@triton.jit
def _kernel(
    out,
    q,
    k,
    v,
    queries,
    read,
    starts,
    logs,
    out_image,
    out_head,
    out_token,
    q_image,
    q_head,
    q_token,
    k_image,
    k_head,
    k_token,
    v_image,
    v_head,
    v_token,
    logs_image,
    of_tile,
    blocks,
    draws,
    of_draw,
    repeats,
    scale,
    CHANNELS: tl.constexpr,  # noqa: N803
    PADDED: tl.constexpr,  # noqa: N803
    QUERIES: tl.constexpr,  # noqa: N803
    KEYS: tl.constexpr,  # noqa: N803
):
    """One program: up to QUERIES queries of a tile, in one head of one image."""
    parts = tl.cdiv(of_tile, QUERIES)
    tile = tl.program_id(0) // parts
    head = tl.program_id(1)
    image = tl.program_id(2).to(tl.int64)
    read += head % draws * of_draw
    starts += tile * blocks
    logs += image * logs_image
    k += image * k_image + head // repeats * k_head
    v += image * v_image + head // repeats * v_head

    place = tl.program_id(0) % parts * QUERIES + tl.arange(0, QUERIES)
    query = tl.load(queries + tile * of_tile + place, mask=place < of_tile, other=-1)
    channel = tl.arange(0, PADDED)
    inside = channel < CHANNELS
    owned = (query >= 0)[:, None] & inside[None]
    q += image * q_image + head * q_head
    of_queries = tl.load(q + query[:, None] * q_token + channel[None], mask=owned, other=0.0)

    highest = tl.full([QUERIES], float("-inf"), tl.float32)
    total = tl.zeros([QUERIES], tl.float32)
    mean = tl.zeros([QUERIES, PADDED], tl.float32)
    place = tl.arange(0, KEYS)
    for block in range(blocks):
        weight = tl.load(logs + block * KEYS + place) * LOG2_E
        there = weight > float("-inf")
        key = tl.load(read + tl.load(starts + block) + place, mask=there, other=0)
        at_k = k + key[None] * k_token + channel[:, None]  # (D, KEYS)
        at_v = v + key[:, None] * v_token + channel[None]  # (KEYS, D)
        if CHANNELS == PADDED:
            of_keys, values = tl.load(at_k), tl.load(at_v)
        else:
            of_keys = tl.load(at_k, mask=inside[:, None], other=0.0)
            values = tl.load(at_v, mask=inside[None], other=0.0)
        scores = tl.dot(of_queries, of_keys) * (scale * LOG2_E) + weight[None]
        higher = tl.maximum(highest, tl.max(scores, 1))
        shares = tl.math.exp2(scores - higher[:, None])
        before = tl.math.exp2(highest - higher)
        total = total * before + tl.sum(shares, 1)
        mean = tl.dot(shares.to(values.dtype), values, mean * before[:, None])
        highest = higher

    out += image * out_image + head * out_head
    mean = (mean / total[:, None]).to(out.dtype.element_ty)
    tl.store(out + query[:, None] * out_token + channel[None], mean, mask=owned)
