"""Neighbourhood attention (arXiv 2204.07143): each query reads the keys in a box around it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

Sides = tuple[int, int, int]
"""Along frames, rows and columns."""


def attend(
    q: Tensor, k: Tensor, v: Tensor, sides: Sides, box: Sides, before: int
) -> tuple[Tensor, float]:
    """As comfy-kitchen's ``na3d``: at a border the box is moved and not cut.

    q, k, v: (B, H, L, D), of which the first ``before`` tokens are the prompt's. All queries read
    its keys, and its queries read all keys.
    Returns (B, H, L, D), and the pairs that were read.
    """
    frames, rows, columns = sides
    queries, keys, values = (x[:, :, before:].unflatten(2, sides) for x in (q, k, v))
    starts = find_starts(columns, box[2])
    place = torch.arange(columns)
    near = (place >= starts[:, None]) & (place < starts[:, None] + box[2])  # (W, W)
    mask = F.pad(near.repeat(1, box[0] * box[1]), (before, 0), value=True)

    def take(x: Tensor, on_grid: Tensor, frame: int, row: int) -> Tensor:
        near = on_grid[:, :, frame : frame + box[0], row : row + box[1]].flatten(2, 4)
        return torch.cat([x[:, :, :before], near], dim=2)

    out = torch.empty_like(queries)
    for frame, first in enumerate(find_starts(frames, box[0]).tolist()):
        for row, top in enumerate(find_starts(rows, box[1]).tolist()):
            read = (take(k, keys, first, top), take(v, values, first, top))
            of_row = F.scaled_dot_product_attention(queries[:, :, frame, row], *read, mask)
            out[:, :, frame, row] = of_row
    picture = out.flatten(2, 4)
    of_prompt = F.scaled_dot_product_attention(q[:, :, :before], k, v)
    pairs = frames * rows * int(mask.sum()) + before * k.shape[2]
    return torch.cat([of_prompt, picture], dim=2), float(pairs)


def find_starts(length: int, size: int) -> Tensor:
    """(length,), the first key that each query of an axis reads."""
    return (torch.arange(length) - size // 2).clamp(0, length - size)
