"""Rows of queries and keys as whole numbers of 8 bits, written in Triton."""

from __future__ import annotations

import triton
import triton.language as tl

from .key_blocks_triton import find_unit, load_rows, store_rows

NOT_SPECIALIZED = [f"{x}_{side}" for x in "kv" for side in ("image", "head", "token")] + ["tokens"]

LEAST = tl.constexpr(1e-30)
TO_WHOLE = tl.constexpr(12582912.0)
"""To add this number and to subtract it again rounds a smaller one to whole, halves to even."""


@triton.jit
def round_rows(x):
    """As ``round_rows`` in ``tome_core``. x: (R, D) float32. Returns (R, D) int8 and (R,)."""
    largest = tl.maximum(tl.max(tl.abs(x), 1), LEAST)
    whole = x * (127.0 / largest)[:, None] + TO_WHOLE - TO_WHOLE
    return whole.to(tl.int8), largest / 127.0


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def round_and_scale(
    rounded,
    steps,
    scaled,
    k,
    v,
    mean,
    largest,
    k_image,
    k_head,
    k_token,
    v_image,
    v_head,
    v_token,
    tokens,
    UNIT: tl.constexpr,  # noqa: N803
    CHANNELS: tl.constexpr,  # noqa: N803
    PADDED: tl.constexpr,  # noqa: N803
    ROWS: tl.constexpr,  # noqa: N803
):
    """One program: up to ROWS keys and values of one head of one image.

    rounded, steps: where to put the keys, less the mean of all, and what they are to be multiplied
    by; None: nowhere. scaled: the same for the values in units, see ``find_unit``.
    """
    head, image = tl.program_id(1), tl.program_id(2).to(tl.int64)
    row = image * tl.num_programs(1) + head
    place = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    there = place < tokens
    if rounded is not None:
        k += image * k_image * UNIT + head * (k_head * UNIT)
        channel = tl.arange(0, PADDED)
        of_keys = load_rows(k, place, k_token * UNIT, there, 0, PADDED, CHANNELS).to(tl.float32)
        of_mean = tl.load(mean + row * CHANNELS + channel, mask=channel < CHANNELS, other=0.0)
        whole, step = round_rows(of_keys - of_mean[None])
        store_rows(rounded + row * tokens * PADDED, place, PADDED, there, whole, 0, PADDED)
        tl.store(steps + row * tokens + place, step, mask=there)
    if scaled is not None:
        v += image * v_image * UNIT + head * (v_head * UNIT)
        values = load_rows(v, place, v_token * UNIT, there, 0, PADDED, CHANNELS).to(tl.float32)
        values /= find_unit(tl.load(largest + row))
        store_rows(scaled + row * tokens * CHANNELS, place, CHANNELS, there, values, 0, CHANNELS)
