"""Merging among neighbours, written in Triton: three kernels in place of about forty.

The same as ``match_local`` and ``MergePlan.merge`` in ``tome_core``, which say what is computed.
"""

from __future__ import annotations

import triton
import triton.language as tl

DST_LEVEL, LEAST_LEVEL, LEVELS = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2**16 - 1)
"""Similarities, from -1 to 1, are compared as whole numbers. Their steps are finer than those of
float16 near 1. The least one is of a dst, which is never merged into another token."""

BITS = tl.constexpr(4)
"""Levels are counted by so many of their bits at a time. With 8 it takes 1.4 times as long on an
H200."""

DIGITS = tl.constexpr(2**BITS.value)
ROUNDS = tl.constexpr(16 // BITS.value)
COUNT = tl.constexpr(2**16)
"""It is more than the tokens that are numbered at once."""

SIZES = ["tokens", "tile_size", "nearby_size", "slots", "channels"]
STRIDES = ["image_of_metric", "token_of_metric", "image_of_x", "token_of_x"]
NOT_SPECIALIZED = [*SIZES, *STRIDES]
"""Triton compiles no code of its own for these numbers, so that another size of pictures compiles
nothing."""


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def find_nearest(
    levels,
    nearest,
    metric,
    norms,
    numbers,
    nearby,
    dst,
    image_of_metric,
    token_of_metric,
    tokens,
    tile_size,
    nearby_size,
    channels,
    least_norm,
    UNIT: tl.constexpr,  # noqa: N803
    TOKENS: tl.constexpr,  # noqa: N803
    DST: tl.constexpr,  # noqa: N803
    CHANNELS: tl.constexpr,  # noqa: N803
):
    """One program: up to TOKENS tokens of a tile, in one image, find the most similar dst nearby.

    Cosine similarity, from -1 to 1, becomes a level. norms: of the metric.
    """
    parts = tl.cdiv(tile_size, TOKENS)
    tile = tl.program_id(0) // parts
    image = tl.program_id(1).to(tl.int64)
    metric += image * image_of_metric * UNIT
    norms += image * tokens
    nearby += tile * nearby_size

    place = tl.program_id(0) % parts * TOKENS + tl.arange(0, TOKENS)
    token = tl.load(numbers + tile * tile_size + place, mask=place < tile_size, other=-1)
    there = token >= 0
    rows = metric + tl.where(there, token, 0)[:, None].to(tl.int64) * token_of_metric * UNIT
    highest = tl.full([TOKENS], float("-inf"), tl.float32)
    found = tl.zeros([TOKENS], tl.int32)
    for first in range(0, nearby_size, DST):
        at = first + tl.arange(0, DST)
        near = at < nearby_size
        other = tl.load(dst + tl.load(nearby + at, mask=near, other=0))
        columns = metric + other[:, None] * (token_of_metric * UNIT)
        products = tl.zeros([TOKENS, DST], tl.float32)
        for before in range(0, channels * UNIT, CHANNELS):
            channel = before + tl.arange(0, CHANNELS)
            inside = channel < channels * UNIT
            a = tl.load(rows + channel[None], mask=inside[None], other=0.0)
            b = tl.load(columns + channel[None], mask=inside[None], other=0.0)
            products = tl.dot(a, tl.trans(b), products)
        similarity = products / tl.maximum(tl.load(norms + other), least_norm)[None]
        is_number = similarity == similarity
        similarity = tl.where(near[None] & is_number, similarity, float("-inf"))
        most, which = tl.max(similarity, 1, return_indices=True)
        found = tl.where(most > highest, first + which, found)
        highest = tl.maximum(most, highest)
    highest /= tl.maximum(tl.load(norms + token, mask=there, other=1.0), least_norm)
    highest = tl.where(highest == highest, tl.clamp(highest, -1.0, 1.0), -1.0)
    level = LEAST_LEVEL + ((highest + 1.0) * ((LEVELS - LEAST_LEVEL) / 2)).to(tl.int32)
    out = image * tokens + token
    tl.store(levels + out, level, mask=there)
    tl.store(nearest + out, tl.load(dst + tl.load(nearby + found)).to(tl.int32), mask=there)


@triton.jit(do_not_specialize=["dst_size", "slots"])
def number_slots(
    rows,
    chosen,
    sizes,
    heads,
    links,
    levels,
    nearest,
    dst,
    order,
    tokens,
    dst_size,
    slots,
    TOKENS: tl.constexpr,  # noqa: N803
):
    """One program: the slots of one image, where the tokens of highest level are merged.

    ``rows`` gets the slot of each token, counted through all images. Of equal tokens the first ones
    in ``order`` are merged, and slots are numbered along it. What is merged into a slot is a linked
    list: ``heads`` of each slot, then ``links`` of each token, -1 at its end.
    """
    image = tl.program_id(0).to(tl.int64)
    levels += image * tokens
    nearest += image * tokens
    rows += image * tokens
    links += image * tokens
    place = tl.arange(0, TOKENS)

    for first in range(0, dst_size, TOKENS):
        token = tl.load(dst + first + place, mask=first + place < dst_size, other=0)
        tl.store(levels + token, DST_LEVEL, mask=first + place < dst_size)
    tl.debug_barrier()  # what is read from here on was written by other threads of this program

    # The highest level that as many tokens have at least as are merged, digit by digit. Tokens with
    # other digits before are counted apart, in the upper half.
    least, of_equal = 0, tokens - slots
    for digit in tl.static_range(ROUNDS):
        counts = tl.zeros([2 * DIGITS], tl.int32)
        for first in range(0, tokens, TOKENS):
            level = tl.load(levels + first + place, mask=first + place < tokens, other=DST_LEVEL)
            level >>= BITS * (ROUNDS - 1 - digit)
            counts += tl.histogram(
                tl.where(level >> BITS == least, level % DIGITS, DIGITS), 2 * DIGITS
            )
        found, of_equal = _find_from_top(counts, of_equal)
        least = least * DIGITS + found

    # Two counts in one number, so that they are added up at once.
    equal_before = 0
    above_before = 0
    for first in range(0, tokens, TOKENS):
        at = first + place
        inside = at < tokens
        token = tl.load(order + at, mask=inside, other=0)
        level = tl.load(levels + token, mask=inside, other=DST_LEVEL)
        above, equal = inside & (level > least), inside & (level == least)
        both = tl.cumsum(above.to(tl.int32) + COUNT * equal.to(tl.int32))
        rank = equal_before + both // COUNT
        stays = inside & (above == 0) & ((equal == 0) | (rank > of_equal))
        slot = image * slots + at - above_before - both % COUNT - tl.minimum(rank, of_equal)
        tl.store(rows + token, tl.where(stays, slot, -1), mask=inside)
        tl.store(chosen + slot, token, mask=stays)
        tl.store(sizes + slot, tl.full([TOKENS], 1, tl.int64), mask=stays)
        tl.store(heads + slot, tl.full([TOKENS], -1, tl.int32), mask=stays)
        of_block = tl.max(both)
        equal_before += of_block // COUNT
        above_before += of_block % COUNT
    tl.debug_barrier()

    for first in range(0, tokens, TOKENS):
        token = first + place
        inside = token < tokens
        is_merged = inside & (tl.load(rows + token, mask=inside, other=0) < 0)
        into = tl.load(nearest + token, mask=is_merged, other=0)
        slot = tl.load(rows + into, mask=is_merged, other=0)
        tl.store(rows + token, slot, mask=is_merged)
        tl.atomic_add(sizes + slot, tl.full([TOKENS], 1, tl.int64), mask=is_merged)
        tl.store(links + token, tl.atomic_xchg(heads + slot, token, mask=is_merged), mask=is_merged)


@triton.jit
def _find_from_top(counts, wanted):
    """The highest digit from which on there are as many as wanted, and how many of it are wanted.

    counts: (2·DIGITS,), of which the upper half does not count.
    """
    digit = tl.arange(0, 2 * DIGITS)
    counts = tl.where(digit < DIGITS, counts, 0)
    from_here_on = tl.cumsum(counts, reverse=True)
    found = tl.sum((from_here_on >= wanted).to(tl.int32)) - 1
    return found, wanted - tl.sum(tl.where(digit == found, from_here_on - counts, 0))


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def average_slots(
    out,
    x,
    chosen,
    sizes,
    heads,
    links,
    image_of_x,
    token_of_x,
    tokens,
    slots,
    channels,
    UNIT: tl.constexpr,  # noqa: N803
    CHANNELS: tl.constexpr,  # noqa: N803
):
    """One program: the mean of one slot's tokens.

    The order of a linked list depends on which thread came first. Sums in double precision do not
    depend on it: that of up to 8,192 numbers is exact in float16, and in bfloat16 if the largest is
    less than 2^32 times the smallest.
    """
    image = tl.program_id(1).to(tl.int64)
    x += image * image_of_x * UNIT
    slot = image * slots + tl.program_id(0)
    channel = tl.arange(0, CHANNELS)
    inside = channel < channels * UNIT
    token = tl.load(heads + slot)
    own = x + tl.load(chosen + slot) * (token_of_x * UNIT)
    mean = tl.load(own + channel, mask=inside, other=0.0)
    if token >= 0:
        total = mean.to(tl.float64)
        while token >= 0:
            row = x + token.to(tl.int64) * (token_of_x * UNIT)
            total += tl.load(row + channel, mask=inside, other=0.0).to(tl.float64)
            token = tl.load(links + image * tokens + token)
        size = tl.load(sizes + slot).to(tl.float32)
        mean = (total.to(tl.float32) / size).to(mean.dtype)
    tl.store(out + slot * (channels * UNIT) + channel, mean, mask=inside)
