"""Attention to keys that are named by number and have weights, written in Triton.

FlashAttention 2 (arXiv 2307.08691, algorithm 1) that reads keys and values where they lie, so that
none of those that several tiles of queries read is copied.
"""

from __future__ import annotations

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def attend(
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
    k += image * k_image + head // repeats * k_head
    v += image * v_image + head // repeats * v_head
    q += image * q_image + head * q_head
    out += image * out_image + head * out_head

    place = tl.program_id(0) % parts * QUERIES + tl.arange(0, QUERIES)
    query = tl.load(queries + tile * of_tile + place, mask=place < of_tile, other=-1)
    owned = query >= 0
    of_queries = _load_rows(q, query, q_token, owned, CHANNELS, PADDED)
    source = k, k_token, v, v_token
    keys = read, starts + tile * blocks, logs + image * logs_image, blocks
    state = _begin(QUERIES, PADDED)
    _, total, mean = _read(of_queries, state, source, keys, scale, CHANNELS, PADDED, KEYS)
    _store_rows(out, query, out_token, owned, mean / total[:, None], CHANNELS, PADDED)


@triton.jit
def attend_merged(
    out,
    q,
    k,
    v,
    numbers,
    owned,
    kept,
    slots,
    read,
    far_starts,
    far_logs,
    near_starts,
    near_logs,
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
    strips_of_tile,
    of_strip,
    left,
    kept_row,
    far_blocks,
    near_blocks,
    draws,
    of_draw,
    repeats,
    scale,
    CHANNELS: tl.constexpr,  # noqa: N803
    PADDED: tl.constexpr,  # noqa: N803
    QUERIES: tl.constexpr,  # noqa: N803
    KEYS: tl.constexpr,  # noqa: N803
):
    """One program: a strip of merged queries, in one head of one image.

    The queries that remain read the far keys, at most QUERIES of them. Then all queries of the
    strip, QUERIES at a time, begin with what their slot found, and read the near keys. Smaller
    blocks for the last few are slower: Hopper's matrix products take 64 rows.
    """
    strip = tl.program_id(0)
    tile = strip // strips_of_tile
    head = tl.program_id(1)
    image = tl.program_id(2).to(tl.int64)
    row = image * tl.num_programs(0) + strip
    read += head % draws * of_draw
    k += image * k_image + head // repeats * k_head
    v += image * v_image + head // repeats * v_head
    q += image * q_image + head * q_head
    out += image * out_image + head * out_head

    slot = tl.arange(0, QUERIES)
    there = slot < left
    query = tl.load(kept + row * kept_row + slot, mask=there, other=0)
    query = tl.load(numbers + strip * of_strip + query)
    of_queries = _load_rows(q, query, q_token, there, CHANNELS, PADDED)
    source = k, k_token, v, v_token
    keys = read, far_starts + tile * far_blocks, far_logs, far_blocks
    state = _begin(QUERIES, PADDED)
    highest, total, mean = _read(of_queries, state, source, keys, scale, CHANNELS, PADDED, KEYS)
    found = (mean / total[:, None]).to(of_queries.dtype), highest + tl.math.log2(total)

    keys = read, near_starts + tile * near_blocks, near_logs, near_blocks
    members = owned + strip * of_strip, slots + row * of_strip, of_strip
    asked = q, q_token, out, out_token
    for first in range(0, of_strip, QUERIES):
        _read_near(first, members, asked, found, source, keys, scale, CHANNELS, PADDED, KEYS)


@triton.jit
def _read_near(
    first,
    members,
    asked,
    found,
    source,
    keys,
    scale,
    CHANNELS: tl.constexpr,  # noqa: N803
    PADDED: tl.constexpr,  # noqa: N803
    KEYS: tl.constexpr,  # noqa: N803
):
    """As many queries of a strip as it has slots, from place ``first`` on, begin with what their
    slots found.

    members: the queries of the strip, the slot of each, and how many there are. asked: where the
    queries lie and where their output goes. found: of each slot the mean of values,
    (QUERIES, PADDED), and the base 2 log of what it is divided by, (QUERIES,).
    """
    owned, slots, of_strip = members
    q, q_token, out, out_token = asked
    of_slots, log_of_slots = found
    slot = tl.arange(0, of_slots.shape[0])
    place = first + slot
    inside = place < of_strip
    query = tl.load(owned + place, mask=inside, other=-1)
    taken = tl.load(slots + place, mask=inside, other=0)
    takes = taken[:, None] == slot[None]  # a product with it takes rows of slots
    mean = tl.dot(takes.to(of_slots.dtype), of_slots)
    highest = tl.sum(tl.where(takes, log_of_slots[None], 0.0), 1)
    state = highest, tl.full([of_slots.shape[0]], 1.0, tl.float32), mean
    of_queries = _load_rows(q, query, q_token, query >= 0, CHANNELS, PADDED)
    _, total, mean = _read(of_queries, state, source, keys, scale, CHANNELS, PADDED, KEYS)
    _store_rows(out, query, out_token, query >= 0, mean / total[:, None], CHANNELS, PADDED)


@triton.jit
def _begin(QUERIES: tl.constexpr, PADDED: tl.constexpr):  # noqa: N803
    """What ``_read`` goes on from where no key was read yet."""
    highest = tl.full([QUERIES], float("-inf"), tl.float32)
    return highest, tl.zeros([QUERIES], tl.float32), tl.zeros([QUERIES, PADDED], tl.float32)


@triton.jit
def _read(
    of_queries,
    state,
    source,
    keys,
    scale,
    CHANNELS: tl.constexpr,  # noqa: N803
    PADDED: tl.constexpr,  # noqa: N803
    KEYS: tl.constexpr,  # noqa: N803
):
    """Attention to more keys, block by block.

    state: of each query until then, the highest score, the sum of exp2(scores - highest) and the
    sum of values that these weigh. source: where keys and values lie. keys: their numbers, where
    each block begins there, logs of their weights, and how many blocks there are.
    """
    highest, total, mean = state
    k, k_token, v, v_token = source
    read, starts, logs, blocks = keys
    channel = tl.arange(0, PADDED)
    inside = channel < CHANNELS
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
    return highest, total, mean


@triton.jit
def _load_rows(x, row, stride, there, CHANNELS: tl.constexpr, PADDED: tl.constexpr):  # noqa: N803
    """Zeros where no row is there. row, there: (QUERIES,). Returns (QUERIES, PADDED)."""
    channel = tl.arange(0, PADDED)
    mask = there[:, None] & (channel < CHANNELS)[None]
    return tl.load(x + row[:, None] * stride + channel[None], mask=mask, other=0.0)


@triton.jit
def _store_rows(
    x,
    row,
    stride,
    there,
    values,
    CHANNELS: tl.constexpr,  # noqa: N803
    PADDED: tl.constexpr,  # noqa: N803
):
    """values: (QUERIES, PADDED)."""
    channel = tl.arange(0, PADDED)
    mask = there[:, None] & (channel < CHANNELS)[None]
    tl.store(x + row[:, None] * stride + channel[None], values.to(x.dtype.element_ty), mask=mask)
