"""What our attention kernels share, written in Triton: rows by number, and blocks of keys."""

from __future__ import annotations

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def attend_to_blocks(
    of_queries,
    source,
    keys,
    scale,
    CHANNELS: tl.constexpr,  # noqa: N803
    PADDED: tl.constexpr,  # noqa: N803
    KEYS: tl.constexpr,  # noqa: N803
):
    """FlashAttention 2 (arXiv 2307.08691, algorithm 1) over keys that are named by number.

    of_queries: (QUERIES, PADDED). source: where keys and values lie, and how far it is from one to
    the next. keys: their numbers and the place of the last one, where each block begins there, logs
    of their weights, and how many blocks there are.

    Returns the mean of the values, (QUERIES, PADDED), and the base 2 log of the sum of
    exp(scores), (QUERIES,).
    """
    k, k_token, v, v_token = source
    numbers, last, starts, logs, blocks = keys
    highest = tl.full([of_queries.shape[0]], float("-inf"), tl.float32)
    total = tl.zeros([of_queries.shape[0]], tl.float32)
    mean = tl.zeros([of_queries.shape[0], PADDED], tl.float32)
    channel = tl.arange(0, PADDED)
    inside = (channel < CHANNELS)[None]
    place = tl.arange(0, KEYS)
    number = _load_numbers(numbers, last, tl.load(starts), place)
    for block in range(blocks):
        weight = tl.load(logs + block * KEYS + place) * LOG2_E
        # Keys are loaded as rows, as values are, so that both share their numbers.
        at_k = k + number[:, None] * k_token + channel[None]  # (KEYS, D)
        at_v = v + number[:, None] * v_token + channel[None]
        if CHANNELS == PADDED:
            of_keys, values = tl.load(at_k), tl.load(at_v)
        else:
            of_keys = tl.load(at_k, mask=inside, other=0.0)
            values = tl.load(at_v, mask=inside, other=0.0)
        # Those of the next block, so that its keys need not wait for them.
        start = tl.load(starts + tl.minimum(block + 1, blocks - 1))
        number = _load_numbers(numbers, last, start, place)
        scores = tl.dot(of_queries, tl.trans(of_keys)) * (scale * LOG2_E) + weight[None]
        higher = tl.maximum(highest, tl.max(scores, 1))
        shares = tl.math.exp2(scores - higher[:, None])
        before = tl.math.exp2(highest - higher)
        total = total * before + tl.sum(shares, 1)
        mean = tl.dot(shares.to(values.dtype), values, mean * before[:, None])
        highest = higher
    return mean / total[:, None], highest + tl.math.log2(total)


@triton.jit
def _load_numbers(numbers, last, start, place):
    """Of the keys of a block. It may reach beyond the end of its set: such keys weigh nothing."""
    return tl.load(numbers + tl.minimum(start + place, last))


@triton.jit
def load_rows(x, row, stride, there, CHANNELS: tl.constexpr, PADDED: tl.constexpr):  # noqa: N803
    """Zeros where no row is there. row, there: (QUERIES,). Returns (QUERIES, PADDED)."""
    channel = tl.arange(0, PADDED)
    mask = there[:, None] & (channel < CHANNELS)[None]
    return tl.load(x + row[:, None] * stride + channel[None], mask=mask, other=0.0)


@triton.jit
def store_rows(
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
