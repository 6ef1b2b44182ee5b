"""Attention to keys that are named by number and have weights, written in Triton.

Keys and values are read where they lie, so that none of those that several tiles of queries read
is copied.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .key_blocks_triton import LOG2_E, attend_to_blocks, load_rows, store_rows
from .rounding_triton import round_rows

STRIDES = [f"{x}_{side}" for x in ("out", "q", "k", "v") for side in ("image", "head", "token")]
COUNTS = ["tokens", "tile_size", "strips_of_tile", "strip_size", "left", "kept_row", "blocks"]
NOT_SPECIALIZED = [*STRIDES, *COUNTS, "logs_image", "draws", "draw_length"]
"""Triton compiles no code of its own for these numbers, so that another size of pictures compiles
nothing."""


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def attend(
    out,
    out_logs,
    q,
    k,
    v,
    steps,
    mean_of_keys,
    largest,
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
    tokens,
    tile_size,
    blocks,
    draws,
    draw_length,
    repeats,
    scale,
    UNIT: tl.constexpr,  # noqa: N803
    CHANNELS: tl.constexpr,  # noqa: N803
    PADDED: tl.constexpr,  # noqa: N803
    QUERIES: tl.constexpr,  # noqa: N803
    KEYS: tl.constexpr,  # noqa: N803
    PARTS: tl.constexpr,  # noqa: N803
):
    """One program: up to QUERIES queries of a tile, in one head of one image."""
    parts = tl.cdiv(tile_size, QUERIES)
    tile = tl.program_id(0) // parts
    head = tl.program_id(1)
    image = tl.program_id(2).to(tl.int64)
    of_head = image * (tl.num_programs(1) // repeats) + head // repeats
    k += _find_keys(steps, image, head // repeats, k_image, k_head, of_head, tokens, UNIT, PADDED)
    if steps is not None:
        steps += of_head * tokens
    if largest is not None:
        largest += of_head
    v += image * v_image * UNIT + head // repeats * (v_head * UNIT)
    q += image * q_image * UNIT + head * (q_head * UNIT)
    out += image * out_image * UNIT + head * (out_head * UNIT)

    place = tl.program_id(0) % parts * QUERIES + tl.arange(0, QUERIES)
    query = tl.load(queries + tile * tile_size + place, mask=place < tile_size, other=-1)
    owned = query >= 0
    of_queries = load_rows(q, query, q_token * UNIT, owned, 0, PADDED, CHANNELS)
    if steps is not None:
        mean_of_keys += of_head * CHANNELS
        of_queries, scale, of_mean = _round_queries(of_queries, scale, mean_of_keys, CHANNELS)
    numbers = read + head % draws * draw_length
    keys = numbers, draw_length - 1, starts + tile * blocks, logs + image * logs_image, blocks
    source = k, k_token * UNIT, v, v_token * UNIT
    mean, second, log = attend_to_blocks(
        of_queries, source, steps, largest, keys, scale, CHANNELS, PADDED, KEYS, PARTS
    )
    store_rows(out, query, out_token * UNIT, owned, mean, 0, CHANNELS)
    if PARTS == 2:
        store_rows(out, query, out_token * UNIT, owned, second, PADDED // 2, CHANNELS)
    if out_logs is not None:
        if steps is not None:
            log += of_mean
        out_logs += (image * tl.num_programs(1) + head) * tokens
        tl.store(out_logs + query, log, mask=owned)


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def attend_merged(
    out,
    out_logs,
    q,
    k,
    v,
    steps,
    mean_of_keys,
    largest,
    numbers,
    owned,
    kept,
    slots,
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
    tokens,
    strips_of_tile,
    strip_size,
    left,
    kept_row,
    blocks,
    draws,
    draw_length,
    repeats,
    scale,
    UNIT: tl.constexpr,  # noqa: N803
    CHANNELS: tl.constexpr,  # noqa: N803
    PADDED: tl.constexpr,  # noqa: N803
    QUERIES: tl.constexpr,  # noqa: N803
    KEYS: tl.constexpr,  # noqa: N803
    PARTS: tl.constexpr,  # noqa: N803
):
    """One program: a strip of merged queries, in one head of one image.

    The queries that remain read the far keys, at most QUERIES of them. What they find is joined to
    what all queries of the strip found in the near keys, which ``out`` and ``out_logs`` hold.
    """
    strip = tl.program_id(0)
    tile = strip // strips_of_tile
    head = tl.program_id(1)
    image = tl.program_id(2).to(tl.int64)
    row = image * tl.num_programs(0) + strip
    of_head = image * (tl.num_programs(1) // repeats) + head // repeats
    k += _find_keys(steps, image, head // repeats, k_image, k_head, of_head, tokens, UNIT, PADDED)
    if steps is not None:
        steps += of_head * tokens
    if largest is not None:
        largest += of_head
    v += image * v_image * UNIT + head // repeats * (v_head * UNIT)
    q += image * q_image * UNIT + head * (q_head * UNIT)
    out += image * out_image * UNIT + head * (out_head * UNIT)
    out_logs += (image * tl.num_programs(1) + head) * tokens

    slot = tl.arange(0, QUERIES)
    there = slot < left
    query = tl.load(kept + row * kept_row + slot, mask=there, other=0)
    query = tl.load(numbers + strip * strip_size + query)
    of_queries = load_rows(q, query, q_token * UNIT, there, 0, PADDED, CHANNELS)
    if steps is not None:
        mean_of_keys += of_head * CHANNELS
        of_queries, scale, of_mean = _round_queries(of_queries, scale, mean_of_keys, CHANNELS)
    far = read + head % draws * draw_length
    keys = far, draw_length - 1, starts + tile * blocks, logs, blocks
    source = k, k_token * UNIT, v, v_token * UNIT
    mean, second, log = attend_to_blocks(
        of_queries, source, steps, largest, keys, scale, CHANNELS, PADDED, KEYS, PARTS
    )
    if steps is not None:
        log += of_mean
    mean, second = mean.to(out.dtype.element_ty), second.to(out.dtype.element_ty)

    for first in range(0, strip_size, QUERIES):
        place = first + slot
        inside = place < strip_size
        query = tl.load(owned + strip * strip_size + place, mask=inside, other=-1)
        there = query >= 0
        taken = tl.load(slots + row * strip_size + place, mask=inside, other=0)
        takes = taken[:, None] == slot[None]  # a product with it takes rows of slots
        log_of_far = tl.sum(tl.where(takes, log[None], 0.0), 1)
        log_of_near = tl.load(out_logs + query, mask=there, other=0.0)
        share = 1 / (1 + tl.math.exp2(log_of_near - log_of_far))
        near = out, query, out_token * UNIT, there
        _join_rows(near, tl.dot(takes.to(mean.dtype), mean), share, 0, CHANNELS)
        if PARTS == 2:
            of_far = tl.dot(takes.to(mean.dtype), second)
            _join_rows(near, of_far, share, PADDED // 2, CHANNELS)


@triton.jit
def _find_keys(
    steps,
    image,
    group,
    k_image,
    k_head,
    of_head,
    tokens,
    UNIT: tl.constexpr,  # noqa: N803
    PADDED: tl.constexpr,  # noqa: N803
):
    """How far it is to the keys of a head.

    Rounded ones follow each other. Their strides would say the same, but not that 16 of them can be
    loaded at once.
    """
    if steps is None:
        distance = image * k_image * UNIT + group * (k_head * UNIT)
    else:
        distance = of_head * tokens * PADDED
    return distance


@triton.jit
def _round_queries(rows, scale, mean, CHANNELS: tl.constexpr):  # noqa: N803
    """Rows as whole numbers of 8 bits, (QUERIES, PADDED).

    mean: of the keys.

    Returns also the scale of the scores for each row, (QUERIES, 1), and the base 2 log of what each
    weighs the mean, which its scores are without. (QUERIES,)
    """
    rows = rows.to(tl.float32)
    channel = tl.arange(0, rows.shape[1])
    mean = tl.load(mean + channel, mask=channel < CHANNELS, other=0.0)
    of_mean = tl.sum(rows * mean[None], 1) * (scale * LOG2_E)
    whole, step = round_rows(rows)
    return whole, (step * scale)[:, None], of_mean


@triton.jit
def _join_rows(near, of_far, share, FIRST: tl.constexpr, CHANNELS: tl.constexpr):  # noqa: N803
    """Put what queries found in the far keys, (QUERIES, WIDTH), into what they found in the near.

    share: of the weights of all keys, what the far keys have. (QUERIES,).
    """
    out, query, stride, there = near
    of_near = load_rows(out, query, stride, there, FIRST, of_far.shape[1], CHANNELS)
    joined = of_near + (of_far - of_near) * share[:, None]
    store_rows(out, query, stride, there, joined, FIRST, CHANNELS)
