"""What our attention kernels share, written in Triton: rows by number, and blocks of keys."""

from __future__ import annotations

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def attend_to_blocks(
    of_queries,
    source,
    steps,
    largest,
    keys,
    scale,
    CHANNELS: tl.constexpr,  # noqa: N803
    PADDED: tl.constexpr,  # noqa: N803
    KEYS: tl.constexpr,  # noqa: N803
    PARTS: tl.constexpr,  # noqa: N803
):
    """FlashAttention 2 (arXiv 2307.08691, algorithm 1) over keys that are named by number.

    of_queries: (QUERIES, PADDED). source: where keys and values lie, and how far it is from one to
    the next. steps: what whole numbers of keys are to be multiplied by, None where keys are not
    rounded. largest: the largest value of the head, None where all sums are of single precision.
    keys: their numbers and the place of the last one, where each block begins there, logs of their
    weights, and how many blocks there are. scale: of the scores, one number or (QUERIES, 1). PARTS:
    1, or 2 for the channels of values in two halves, see ``shapes``.

    Returns the mean of the values in both parts, (QUERIES, PADDED // PARTS), where there is a
    second one; and the base 2 log of the sum of exp(scores), (QUERIES,).
    """
    k, k_token, v, v_token = source
    numbers, last, starts, logs, blocks = keys
    width: tl.constexpr = PADDED // PARTS
    highest = tl.full([of_queries.shape[0]], float("-inf"), tl.float32)
    total = tl.zeros([of_queries.shape[0]], tl.float32)
    mean = tl.zeros([of_queries.shape[0], width], tl.float32)
    second = tl.zeros([of_queries.shape[0], width], tl.float32)
    place = tl.arange(0, KEYS)
    number = _load_numbers(numbers, last, tl.load(starts), place)
    for block in range(blocks):
        weight = tl.load(logs + block * KEYS + place) * LOG2_E
        # Keys are loaded as rows, as values are, so that both share their numbers.
        if steps is None:
            of_keys = _load_keys(k, number, k_token, 0, PADDED, CHANNELS)  # (KEYS, PADDED)
        else:
            of_keys = _load_keys(k, number, PADDED, 0, PADDED, PADDED)
            step = tl.load(steps + number)
        if PARTS == 1:
            values = _load_keys(v, number, v_token, 0, width, CHANNELS)
        present = number
        # Those of the next block, so that its keys need not wait for them.
        start = tl.load(starts + tl.minimum(block + 1, blocks - 1))
        number = _load_numbers(numbers, last, start, place)
        products = tl.dot(of_queries, tl.trans(of_keys))
        if steps is not None:
            products = products.to(tl.float32) * step[None]
        scores = products * (scale * LOG2_E) + weight[None]
        higher = tl.maximum(highest, tl.max(scores, 1))
        shares = tl.math.exp2(scores - higher[:, None])
        before = tl.math.exp2(highest - higher)
        total = total * before + tl.sum(shares, 1)
        # Triton loads both halves ahead as well, but in this order it needs fewer registers.
        if PARTS == 2:
            values = _load_keys(v, present, v_token, width, width, CHANNELS)
            second = _add(second * before[:, None], shares, values, largest)
            values = _load_keys(v, present, v_token, 0, width, CHANNELS)
        mean = _add(mean * before[:, None], shares, values, largest)
        highest = higher
    log = highest + tl.math.log2(total)
    if largest is not None:
        total /= find_unit(tl.load(largest))
    return mean / total[:, None], second / total[:, None], log


@triton.jit
def _add(sums, shares, values, largest):
    """Values of a block's keys, by their shares, to sums of single precision."""
    if largest is None:
        sums = tl.dot(shares.to(values.dtype), values, sums)
    else:
        sums += tl.dot(shares.to(values.dtype), values, out_dtype=tl.float16)
    return sums


@triton.jit
def find_unit(largest):
    """A power of two, of which values are 512 at most, so that no sum of a block overflows."""
    return tl.math.exp2(tl.math.ceil(tl.math.log2(tl.maximum(largest, 1e-30) / 512.0)))


@triton.jit
def _load_numbers(numbers, last, start, place):
    """The numbers of a block's keys.

    A block may reach beyond the end of its set: such keys weigh nothing.
    """
    return tl.load(numbers + tl.minimum(start + place, last))


@triton.jit
def _load_keys(
    x,
    number,
    stride,
    FIRST: tl.constexpr,  # noqa: N803
    WIDTH: tl.constexpr,  # noqa: N803
    CHANNELS: tl.constexpr,  # noqa: N803
):
    """Channels from FIRST on. number: (KEYS,). Returns (KEYS, WIDTH)."""
    channel = FIRST + tl.arange(0, WIDTH)
    at = x + number[:, None] * stride + channel[None]
    if FIRST + WIDTH <= CHANNELS:
        rows = tl.load(at)
    else:
        rows = tl.load(at, mask=(channel < CHANNELS)[None], other=0.0)
    return rows


@triton.jit
def load_rows(
    x,
    row,
    stride,
    there,
    FIRST: tl.constexpr,  # noqa: N803
    WIDTH: tl.constexpr,  # noqa: N803
    CHANNELS: tl.constexpr,  # noqa: N803
):
    """Channels from FIRST on, zeros where no row is there. row, there: (QUERIES,).

    Returns (QUERIES, WIDTH).
    """
    channel = FIRST + tl.arange(0, WIDTH)
    mask = there[:, None] & (channel < CHANNELS)[None]
    return tl.load(x + row[:, None] * stride + channel[None], mask=mask, other=0.0)


@triton.jit
def store_rows(
    x,
    row,
    stride,
    there,
    values,
    FIRST: tl.constexpr,  # noqa: N803
    CHANNELS: tl.constexpr,  # noqa: N803
):
    """Channels from FIRST on. values: (QUERIES, WIDTH)."""
    channel = FIRST + tl.arange(0, values.shape[1])
    mask = there[:, None] & (channel < CHANNELS)[None]
    tl.store(x + row[:, None] * stride + channel[None], values.to(x.dtype.element_ty), mask=mask)
