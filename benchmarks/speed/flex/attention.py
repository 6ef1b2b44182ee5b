"""Attention with local windows by PyTorch's ``flex_attention``: one kernel in place of many.

Tiles of queries and the keys around them lie in blocks, as in sliding tile attention (arXiv
2502.04507, sec. 3.2). A tile reads the blocks of its draw, and blocks of neighbouring tiles as far
as a mask leaves them. Nothing is subtracted, and nothing is joined.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from token_merge.tome_core import WindowPlan
from token_merge.tome_core.tokens import take_for_heads
from token_merge.tome_core.window_plan import number_draws
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask

from .block_lists import BLOCK, BY_ALL, IN_BOXES
from .layout import Layout
from .places import lies_within

Kernel = Callable[..., Tensor]

KERNEL_OPTIONS = {"BLOCK_M": BLOCK, "BLOCK_N": BLOCK, "ROWS_GUARANTEED_SAFE": True}
"""On a GPU PyTorch would take other blocks, such as 128 queries on an H100. These lists have none
of that size. The last option: every query reads a key."""


def attend_by_flex(
    plan: WindowPlan,
    layout: Layout,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float,
    kernel: Kernel,
) -> Tensor:
    """As ``attend_windows``, without a mask.

    layout: of the plan's grid and box. kernel: ``flex_attention``, compiled. As it is it computes
    all scores.
    """
    heads = k.shape[1]
    tiles = torch.cat([plan.order, layout.last]).index_select(0, layout.order)  # (R,)
    blocks = tiles * layout.blocks + layout.within
    tokens = layout.tokens.index_select(0, blocks).flatten()
    numbers, places = _number_keys(plan, layout, heads)
    log_sizes = layout.log_sizes

    def weigh(score: Tensor, _b: Tensor, _h: Tensor, _i: Tensor, j: Tensor) -> Tensor:
        return score + log_sizes[j]

    out = kernel(
        q.index_select(2, tokens),
        _take(k, numbers),
        _take(v, numbers),
        score_mod=weigh,
        block_mask=_make_mask(layout, tiles, places, q.shape[1] // heads),
        scale=scale,
        enable_gqa=q.shape[1] > heads,
        kernel_options=KERNEL_OPTIONS,
    )
    # In memory heads lie within tokens, as models want to have them.
    whole = q.new_empty(q.shape[0], q.shape[2], q.shape[1], v.shape[3]).transpose(1, 2)
    return whole.index_copy_(2, tokens, out)


def _number_keys(plan: WindowPlan, layout: Layout, heads: int) -> tuple[Tensor, Tensor]:
    """The keys of each head within the stream, and where they lie in the picture.

    (H, K·B) int64 and int32; (1, K·B) where all heads read the same keys.
    """
    draws = number_draws(len(plan.kept), heads, plan.kept.device).T  # (H, S)
    kept = plan.kept[draws[..., None], layout.cells].flatten(1)  # (H, S·m·B)
    numbers = layout.shared.expand(len(kept), -1), kept + plan.stream.before
    places = layout.shared_places.expand(len(kept), -1), layout.places[kept]
    return torch.cat(numbers, dim=1), torch.cat(places, dim=1)


def _take(x: Tensor, numbers: Tensor) -> Tensor:
    """(B, H, L, D), (H or 1, n) -> (B, H, n, D)"""
    return x.index_select(2, numbers[0]) if len(numbers) == 1 else take_for_heads(x, numbers)


def _make_mask(layout: Layout, tiles: Tensor, places: Tensor, repeats: int) -> BlockMask:
    """tiles: (R,), of each block of queries. repeats: heads that read one head of keys."""
    draws, readers, sides = layout.draws, layout.readers, layout.sides
    first = layout.first.index_select(0, tiles)
    last_head = len(places) - 1

    def reads(_b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        row, reader = i // BLOCK, readers[j]
        place = places[h // repeats if last_head else 0, j]
        begin = first[row, 0], first[row, 1], first[row, 2]
        inside = lies_within(place, begin, sides)
        drawn = (reader == draws[row]) & ~inside
        return (reader == BY_ALL) | (reader == IN_BOXES) & inside | drawn

    counts, numbers = layout.partial.take(draws, tiles)
    full_counts, full_numbers = layout.full.take(draws, tiles)
    return BlockMask.from_kv_blocks(
        counts,
        numbers,
        full_counts,
        full_numbers,
        BLOCK_SIZE=(BLOCK, BLOCK),
        mask_mod=reads,
        seq_lengths=(len(tiles) * BLOCK, len(readers)),
        compute_q_blocks=False,
    )
