"""Merging the queries of strips by one kernel of our own, written in Triton, in place of thirteen.

The same as ``merge_queries`` in ``tome_core``, which says what is computed.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...tome_core.windows import MergedQueries, Strips
from ...tome_core.windows.queries import LEAST_VARIANCE, merge_queries_by_sorting
from .shapes import count_in_units

LOWEST = tl.constexpr(-3e38)
"""This is the similarity where it would be NaN. That of a dst is lower, so it is never merged."""


COUNTS = ["strip_of_places", "strip_size", "dst_size", "left", "channels"]
NOT_SPECIALIZED = ["image_of_metric", "token_of_metric", *COUNTS]
"""Triton compiles no code of its own for these numbers, so that another size of pictures compiles
nothing."""


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def merge_strips(
    kept,
    slots,
    metric,
    numbers,
    places,
    image_of_metric,
    token_of_metric,
    strip_of_places,
    strip_size,
    dst_size,
    left,
    channels,
    least_variance,
    UNIT: tl.constexpr,  # noqa: N803
    QUERIES: tl.constexpr,  # noqa: N803
    DST: tl.constexpr,  # noqa: N803
    CHANNELS: tl.constexpr,  # noqa: N803
):
    """One program: a strip of one image."""
    strip = tl.program_id(0)
    image = tl.program_id(1).to(tl.int64)
    row = image * tl.num_programs(0) + strip
    query, dst = tl.arange(0, QUERIES), tl.arange(0, DST)
    inside, is_there = query < strip_size, dst < dst_size
    token = tl.load(numbers + strip * strip_size + query, mask=inside, other=0)
    place = tl.load(places + strip * strip_of_places + dst, mask=is_there, other=0)
    takes = is_there[:, None] & (place[:, None] == query[None])  # (DST, QUERIES)

    channel = tl.arange(0, CHANNELS)
    metric += image * image_of_metric * UNIT
    at = metric + token[:, None] * (token_of_metric * UNIT) + channel[None]
    channels *= UNIT
    within = inside[:, None] & (channel < channels)[None]
    x = tl.load(at, mask=within, other=0.0)
    centred = tl.where(within, x - (tl.sum(x.to(tl.float32), 1) / channels)[:, None], 0.0)
    variance = tl.sum(centred * centred, 1) / channels
    unit = (centred * tl.rsqrt(variance + least_variance)[:, None]).to(x.dtype)
    of_dst_unit = tl.dot(takes.to(x.dtype), unit).to(x.dtype)  # a product with it takes rows
    similarity = tl.dot(unit, tl.trans(of_dst_unit))  # (QUERIES, DST)
    similarity = tl.where(is_there[None] & (similarity == similarity), similarity, LOWEST)
    best, which = tl.max(similarity, 1, return_indices=True)
    best = tl.where(tl.max(takes.to(tl.int32), 0) > 0, float("-inf"), best)
    best = tl.where(inside, best, float("inf"))

    is_less = best[None] < best[:, None]
    is_before = (best[None] == best[:, None]) & (query[None] < query[:, None])
    rank = tl.sum((is_less | is_before).to(tl.int32), 1)  # the least similar remain
    stays = rank < left
    rank_of_dst = tl.sum(tl.where(takes, rank[None], 0), 1)
    into = tl.sum(tl.where(which[:, None] == dst[None], rank_of_dst[None], 0), 1)
    slot = tl.where(stays, rank, into)
    tl.store(kept + row * left + rank, query.to(tl.int64), mask=stays & inside)
    tl.store(slots + row * strip_size + query, slot.to(tl.int64), mask=inside)


def merge_queries(metric: Tensor, strips: Strips) -> MergedQueries:
    """As the function of this name in ``tome_core``."""
    kept = strips.numbers.new_empty(len(metric), len(strips.numbers), strips.kept)
    slots = strips.numbers.new_empty(len(metric), *strips.numbers.shape)
    _merge_strips(kept, slots, metric, strips)
    return MergedQueries(kept, slots)


def _merge_strips(kept: Tensor, slots: Tensor, metric: Tensor, strips: Strips) -> None:
    """Write which queries remain and what becomes of the others."""
    images, count, strip_size = slots.shape
    dst_size, channels = strips.dst.shape[1], metric.shape[2]
    unit, (*strides, counted) = count_in_units(*metric.stride()[:2], channels)
    # Unlike PyTorch, Triton does not look where its tensors are.
    with torch.cuda.device_of(metric):
        merge_strips[count, images](
            kept,
            slots,
            metric,
            strips.numbers,
            strips.dst,
            *strides,
            strips.dst.stride(0),
            strip_size,
            dst_size,
            strips.kept,
            counted,
            LEAST_VARIANCE,
            UNIT=unit,
            QUERIES=max(16, triton.next_power_of_2(strip_size)),
            DST=max(16, triton.next_power_of_2(dst_size)),
            CHANNELS=max(16, triton.next_power_of_2(channels)),
            num_warps=8,
            enable_fp_fusion=True,
        )


def try_out(device: torch.device, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
    """With which token each query of small strips reads, and with which it has to."""
    generator = torch.Generator(device).manual_seed(0)
    metric = torch.randn(2, 320, 64, generator=generator, device=device, dtype=dtype)
    numbers = torch.arange(320, device=device).view(4, 80)
    strips = Strips(numbers, numbers[:, ::4] % 80, 64)
    found, known = merge_queries(metric, strips), merge_queries_by_sorting(metric.float(), strips)
    yield found.kept.gather(2, found.slots), known.kept.gather(2, known.slots)
