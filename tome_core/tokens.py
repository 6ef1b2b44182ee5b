"""Taking tokens by number out of sequences, with or without heads."""

from __future__ import annotations

from collections.abc import Iterator
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
        # Rows of one matrix are copied faster than rows that each image has at the same place, on a
        # processor twice as fast.
        rows = number_rows(numbers.expand(len(x), -1), x.shape[1])
        return x.flatten(0, 1).index_select(0, rows).unflatten(0, (len(x), numbers.shape[1]))
    if len(numbers) == 1:
        return x.index_select(-2, numbers[0])
    index = numbers[:, None, :, None].expand(-1, x.shape[1], -1, x.shape[3])
    return x.gather(2, index)


def take_for_groups(x: Tensor, numbers: Tensor) -> Tensor:
    """The tokens of each query group, the same numbers for all images.

    x: (B, ..., N, C). numbers: (G, n) int64. Returns (B·G, ..., n, C): group g of image b is row
    b·G + g. Heads stay together as in ``take_tokens``.
    """
    taken = take_tokens(x, numbers.flatten()[None])  # (B, ..., G·n, C)
    return taken.unflatten(-2, numbers.shape).movedim(-3, 1).flatten(0, 1)


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


def number_rows(numbers: Tensor, of_each: int) -> Tensor:
    """Numbers within each image as numbers within the whole batch. (B, n) -> (B·n,).

    of_each: how many an image has.
    """
    if len(numbers) == 1:
        return numbers[0]
    return (numbers + number_first(len(numbers), of_each, numbers.device)).flatten()


@constant
def number_between(start: int, end: int, device: torch.device) -> Tensor:
    """The numbers from ``start`` to ``end`` - 1. (end - start,) int64, not to be written to."""
    return torch.arange(start, end, device=device)


@constant
def number_first(images: int, of_each: int, device: torch.device) -> Tensor:
    """The first row of each image, or of each of other parts. (B, 1) int64."""
    return torch.arange(images, device=device)[:, None] * of_each


def divide_evenly(heads: int, most: int) -> int:
    """How many heads each part has, of as few parts as hold at most ``most``. The last may have
    fewer.
    """
    return ceil(heads / ceil(heads / most))


def list_parts(heads: int, together: int) -> Iterator[range]:
    """Parts of ``together`` heads, one after the other; the last may have fewer."""
    for first in range(0, heads, together):
        yield range(first, min(first + together, heads))


def join_heads(x: Tensor) -> Tensor:
    """(B, H, N, D) -> (B, N, H·D)."""
    return rearrange(x, "b h n d -> b n (h d)")


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B, N, H·D) -> (B, H, N, D)."""
    return rearrange(x, "b n (h d) -> b h n d", h=heads)
