"""Taking tokens by number out of sequences, with or without heads."""

from __future__ import annotations

from functools import lru_cache

import torch
from einops import rearrange
from torch import Tensor


def take_tokens(x: Tensor, numbers: Tensor) -> Tensor:
    """The tokens with these numbers.

    Args:
        x: (B, N, C) or (B, H, N, D).
        numbers: (B or 1, n) int64, in [0, N).

    Returns (B, n, C) or (B, H, n, D).
    """
    if len(numbers) == 1:
        return x.index_select(-2, numbers[0])
    if x.ndim == 3:
        # Whole rows are copied at once, which is faster than a gather of single channels.
        rows = number_rows(numbers, x.shape[1])
        return x.flatten(0, 1).index_select(0, rows).unflatten(0, numbers.shape)
    index = numbers[:, None, :, None].expand(-1, x.shape[1], -1, x.shape[3])
    return x.gather(2, index)


def take_for_groups(x: Tensor, numbers: Tensor) -> Tensor:
    """The tokens of each query group, the same numbers for all images.

    x: (B, ..., N, C). numbers: (G, n) int64. Returns (B·G, ..., n, C): group g of image b is row
    b·G + g.
    """
    taken = x.index_select(-2, numbers.flatten())  # (B, ..., G·n, C)
    return taken.unflatten(-2, numbers.shape).movedim(-3, 1).flatten(0, 1)


def take_for_heads(x: Tensor, numbers: Tensor) -> Tensor:
    """The tokens of each head, the same numbers for all images.

    x: (B, H, N, D). numbers: (H, ...) int64. Returns (B, H, ..., D).
    """
    head = number_between(0, len(numbers), x.device).view(-1, *[1] * (numbers.ndim - 1))
    return x[:, head, numbers]


def number_rows(numbers: Tensor, of_each: int) -> Tensor:
    """Numbers within each image as numbers within the whole batch. (B, n) -> (B·n,).

    of_each: how many an image has.
    """
    if len(numbers) == 1:
        return numbers[0]
    return (numbers + _number_first(len(numbers), of_each, numbers.device)).flatten()


@lru_cache(maxsize=64)
@torch.inference_mode(False)
def number_between(start: int, end: int, device: torch.device) -> Tensor:
    """The numbers from ``start`` to ``end`` - 1. (end - start,) int64, not to be written to."""
    return torch.arange(start, end, device=device)


@lru_cache(maxsize=64)
@torch.inference_mode(False)
def _number_first(images: int, of_each: int, device: torch.device) -> Tensor:
    """The first row of each image. (B, 1) int64."""
    return torch.arange(images, device=device)[:, None] * of_each


def join_heads(x: Tensor) -> Tensor:
    """(B, H, N, D) -> (B, N, H·D)."""
    return rearrange(x, "b h n d -> b n (h d)")


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B, N, H·D) -> (B, H, N, D)."""
    return rearrange(x, "b n (h d) -> b h n d", h=heads)
