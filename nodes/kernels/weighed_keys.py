"""Attention to keys that stand for several tokens, by one kernel."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ...tome_core.attention import attend_weighed_densely
from ...tome_core.tokens import make_output, number_between
from .attention import attend_tiles
from .key_blocks import list_weighed_blocks
from .rounding import round_and_scale
from .shapes import choose_shape


def attend_weighed(q: Tensor, k: Tensor, v: Tensor, sizes: Tensor, scale: float) -> Tensor:
    """As the function of this name in ``tome_core``, in half precision."""
    out = make_output(q, q.shape[3])
    queries, read = (
        number_between(0, x.shape[2], q.device, torch.int32)[None] for x in (q, k)
    )  # (1, Nq) and (1, Nk)
    shape = choose_shape(q.device, q.shape[3], in_order=True)
    blocks = list_weighed_blocks(sizes, shape.keys)
    read_from = round_and_scale(k, v, shape)
    attend_tiles(out, None, q, read_from, queries, read, blocks, scale, shape)
    return out


def try_out(
    device: torch.device, dtype: torch.dtype, channels: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """What the kernel computes of a few tokens, and what it has to be."""
    generator = torch.Generator(device).manual_seed(0)
    size = (3, 1, 2, 403, channels)
    q, k, v = torch.randn(size, generator=generator, device=device, dtype=dtype)
    sizes = torch.arange(403, device=device)[None] % 5 + 1
    given = q, k, v, sizes, channels**-0.5
    yield attend_weighed(*given), attend_weighed_densely(*given)
