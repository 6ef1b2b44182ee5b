"""Taking tokens by number out of sequences, with or without heads."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

import torch
from einops import rearrange
from torch import Tensor

from .constants import constant


def take_tokens(x: Tensor, numbers: Tensor) -> Tensor:
    """The tokens with these numbers.

    Args:
        x: (B, N, C) or (B, H, N, D).
        numbers: (B or 1, n) int64, in [0, N).

    Returns (B, n, C) or (B, H, n, D). The heads of a token stay together in memory where they
    are: whole tokens are copied at once, and attention then joins its heads without another copy.
    """
    if x.ndim == 4 and x.shape[1] > 1 and x.stride()[1::2] == (x.shape[3], 1):
        return split_heads(take_tokens(join_heads(x), numbers), x.shape[1])
    if x.ndim == 3:
        # index_select on one (B·N, C) matrix is faster than gather; on a CPU it takes half as long.
        rows = number_rows(numbers.expand(len(x), -1), x.shape[1])
        return x.flatten(0, 1).index_select(0, rows).unflatten(0, (len(x), numbers.shape[1]))
    if len(numbers) == 1:
        return x.index_select(-2, numbers[0])
    index = numbers[:, None, :, None].expand(-1, x.shape[1], -1, x.shape[3])
    return x.gather(2, index)


def take_for_groups(x: Tensor, numbers: Tensor) -> Tensor:
    """The tokens of each query group, the same numbers for all images.

    x: (B, ..., N, C). numbers: (G, n) int64; the caller keeps this tensor, because the rows
    computed from it are cached under it. Returns (B·G, ..., n, C): group g of image b is row
    b·G + g. Heads stay together as in ``take_tokens``.
    """
    if x.ndim == 3:
        rows = _number_rows_of_groups(numbers, len(x), x.shape[1])
        return x.flatten(0, 1).index_select(0, rows).unflatten(0, (-1, numbers.shape[1]))
    taken = take_tokens(x, numbers.flatten()[None])  # (B, ..., G·n, C)
    return taken.unflatten(-2, numbers.shape).movedim(-3, 1).flatten(0, 1)


@constant
def _number_rows_of_groups(numbers: Tensor, images: int, rows: int) -> Tensor:
    """As ``number_rows`` of (G, n), for the groups of each image. (images·G·n,)."""
    return number_rows(numbers.flatten().expand(images, -1), rows)


def lay_in_rows(x: Tensor) -> Tensor:
    """The same tokens, each of which begins at a multiple of its channels. (B, H, N, D)

    Nearly always a view: heads mostly are a part of the channels of tokens, or the other way round.
    """
    *others, channel = x.stride()
    return x if channel == 1 and not any(side % x.shape[3] for side in others) else x.contiguous()


def take_rows(x: Tensor, rows: Tensor) -> Tensor:
    """Tokens by where they lie in memory: whole rows are copied at once.

    x: (B, H, N, D) from ``lay_in_rows``. rows: int64, the multiple of D at which each begins.
    Returns (*rows, D).
    """
    channels = x.shape[3]
    last = sum((length - 1) * side for length, side in zip(x.shape, x.stride(), strict=True))
    memory = x.as_strided((last // channels + 1, channels), (channels, 1))
    return memory.index_select(0, rows.flatten()).view(*rows.shape, channels)


def number_rows(numbers: Tensor, rows: int) -> Tensor:
    """Numbers within each image as numbers within the whole batch. (B, n) -> (B·n,).

    rows: how many an image has.
    """
    if len(numbers) == 1:
        return numbers[0]
    return (numbers + number_first(len(numbers), rows, numbers.device)).flatten()


@constant
def number_between(
    start: int, end: int, device: torch.device, dtype: torch.dtype = torch.int64
) -> Tensor:
    """The numbers from ``start`` to ``end`` - 1. (end - start,), not to be written to."""
    return torch.arange(start, end, dtype=dtype, device=device)


def find_first_places(order: Tensor, count: int) -> Tensor:
    """Where each index stands first.

    order: (n,) int64, each of 0 ... count - 1 at least once. Returns (count,) int64.
    """
    found, places = order.sort(stable=True)
    return places[torch.searchsorted(found, number_between(0, count, order.device))]


@constant
def number_first(images: int, rows: int, device: torch.device) -> Tensor:
    """The number of the first row of each image, or of each other part of a batch. (B, 1) int64.

    rows: how many rows an image has.
    """
    return torch.arange(images, device=device)[:, None] * rows


def divide_heads(heads: int, held: float, allowed: float, repeats: int = 1) -> list[range]:
    """Heads that are computed together, part by part: as few parts as there can be, and as equal.

    Args:
        held: what one head needs in memory at a time.
        allowed: what a part may need. Each has one head of keys at least.
        repeats: heads of queries that read one of keys, and stay together.
    """
    most = max(1, int(allowed / (repeats * held)))
    of_keys = heads // repeats
    size = repeats * ceil(of_keys / ceil(of_keys / most))
    return [range(first, min(first + size, heads)) for first in range(0, heads, size)]


def make_output(q: Tensor, channels: int) -> Tensor:
    """An empty output of attention, (B, H, N, channels), for queries (B, H, N, D).

    In memory heads lie within tokens, as models want to have them.
    """
    images, heads, tokens, _ = q.shape
    return q.new_empty(images, tokens, heads, channels).transpose(1, 2)


def asks_for_gradients(tensors: Iterable[Tensor | None]) -> bool:
    """Whether there will be a backward pass through any of these, as in training a LoRA."""
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)


def join_heads(x: Tensor) -> Tensor:
    """(B, H, N, D) -> (B, N, H·D)."""
    return rearrange(x, "b h n d -> b n (h d)")


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B, N, H·D) -> (B, H, N, D)."""
    return rearrange(x, "b n (h d) -> b h n d", h=heads)
