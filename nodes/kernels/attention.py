"""Calls of our attention kernel: queries in tiles, keys that are named by number."""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from . import attention_triton
from .key_blocks import KeyBlocks
from .rounding import KeysAndValues
from .shapes import Shape, count_in_units


def attend_tiles(
    out: Tensor,
    out_logs: Tensor | None,
    q: Tensor,
    read_from: KeysAndValues,
    queries: Tensor,
    read: Tensor,
    blocks: KeyBlocks,
    scale: float,
    shape: Shape,
) -> None:
    """Write the attention of some queries.

    Args:
        out, q: (B, H, Nq, D). Channels follow each other.
        read_from: as many keys as queries, where they are rounded.
        out_logs: (B, H, Nq) float32, for the base 2 log of what outputs were divided by; or None.
        queries: (T, Q) int32, the numbers of those of each tile, -1: none.
        read: (S, N) int32, numbers of keys; the heads take the S rows in turn.
        blocks: of T tiles, as large as in ``shape``.
    """
    tiles, tile_size = queries.shape
    parts = triton.cdiv(tile_size, shape.queries)
    image_of_logs = blocks.logs.stride(0) if len(blocks.logs) > 1 else 0
    k = read_from.k
    unit, strides = list_strides(out, q, k, read_from.v)
    # Unlike PyTorch, Triton does not look where its tensors are.
    with torch.cuda.device_of(q):
        attention_triton.attend[tiles * parts, q.shape[1], len(q)](
            out,
            out_logs,
            q,
            read_from.k,
            read_from.v,
            read_from.steps,
            read_from.mean,
            read_from.largest,
            queries,
            read,
            blocks.starts,
            blocks.logs,
            *strides,
            image_of_logs,
            q.shape[2],
            tile_size,
            blocks.starts.shape[1],
            *read.shape,
            q.shape[1] // k.shape[1],
            scale,
            **list_constants(q, unit, shape, read_from),
        )


def list_strides(*tensors: Tensor) -> tuple[int, list[int]]:
    """From image to image, head to head and token to token, of each; as ``count_in_units``."""
    return count_in_units(*(side for each in tensors for side in each.stride()[:3]))


def list_constants(q: Tensor, unit: int, shape: Shape, read_from: KeysAndValues) -> dict[str, Any]:
    """What a kernel is compiled for, and how."""
    padded = max(16, triton.next_power_of_2(q.shape[3]))
    return {
        "UNIT": unit,
        "CHANNELS": q.shape[3],
        "PADDED": padded if read_from.steps is None else read_from.k.shape[3],
        "QUERIES": shape.queries,
        "KEYS": shape.keys,
        "PARTS": shape.parts,
        "num_warps": shape.warps,
        "num_stages": shape.stages,
        "enable_fp_fusion": True,
    }
