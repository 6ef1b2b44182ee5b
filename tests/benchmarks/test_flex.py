"""The candidate with ``flex_attention`` computes what attention with local windows does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from token_merge.tome_core import (
    DownsampleSettings,
    Draws,
    LayerTokens,
    Stream,
    TokenGrid,
    WindowPlan,
    plan_layer,
)
from token_merge.tome_core.window_attention import attend_windows
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask

from benchmarks.speed.flex.attention import attend_by_flex
from benchmarks.speed.flex.block_lists import BLOCK
from benchmarks.speed.flex.layout import lay_out

CASES = {
    "picture and prompt": (Stream(TokenGrid(32, 32), 70), 2.0, 12),
    "tokens on both sides": (Stream(TokenGrid(40, 24), 3, 66), 3.0, 12),
    "cells of several sizes": (Stream(TokenGrid(17, 23), 0, 5), 2.5, 12),
    "a clip": (Stream(TokenGrid(10, 12, 5)), 2.0, 12),
    "large boxes in a clip": (Stream(TokenGrid(17, 16, 5)), 2.0, 16),
    "more cells than a block": (Stream(TokenGrid(34, 20), 1), 2.0, 8),
}


def plan_windows(stream: Stream, factor: float, side: int) -> WindowPlan:
    draws = Draws((7,), torch.device("cpu"))
    layer = LayerTokens(stream, lambda: torch.empty(0), draws, local_window=side)
    plan = plan_layer(DownsampleSettings(factor=factor, local_window=side), layer)
    assert isinstance(plan, WindowPlan)
    return plan


def attend_blockwise(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    score_mod: Callable[..., Tensor],
    block_mask: BlockMask,
    scale: float,
    enable_gqa: bool,
    kernel_options: dict[str, int],
) -> Tensor:
    """As a GPU's kernel: what no list of blocks names is not read, whatever the mask says."""
    assert kernel_options["BLOCK_M"] == kernel_options["BLOCK_N"] == BLOCK
    if enable_gqa:
        k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    sides = map(torch.arange, (*q.shape[:3], k.shape[2]))
    index = [x.view([-1 if axis == own else 1 for axis in range(4)]) for own, x in enumerate(sides)]
    full, partial = (
        list_read(counts, numbers, k.shape[2] // BLOCK)
        for counts, numbers in (
            (block_mask.full_kv_num_blocks, block_mask.full_kv_indices),
            (block_mask.kv_num_blocks, block_mask.kv_indices),
        )
    )
    assert not (full & partial).any(), "a block is read twice"
    read = full | (partial & block_mask.mask_mod(*index))
    scores = score_mod(q @ k.mT * scale, *index)
    return scores.masked_fill(~read, float("-inf")).softmax(dim=-1) @ v


def list_read(counts: Tensor | None, numbers: Tensor | None, blocks: int) -> Tensor:
    """Which keys each query reads. (1, 1, rows) and (1, 1, rows, n) -> (1, 1, Nq, Nk) bool"""
    assert counts is not None and numbers is not None
    listed = torch.arange(numbers.shape[3]) < counts[..., None]
    read = torch.zeros(*counts.shape, blocks, dtype=torch.bool)
    read.scatter_(3, numbers.long(), listed)
    return read.repeat_interleave(BLOCK, dim=2).repeat_interleave(BLOCK, dim=3)


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_output_is_that_of_windows(case: str, repeats: int) -> None:
    plan = plan_windows(*CASES[case])
    length = plan.stream.length
    q = torch.randn(1, 2 * repeats, length, 8)
    k, v = torch.randn(2, 1, 2, length, 8)
    found = attend_by_flex(plan, lay_out(plan), q, k, v, 0.25, attend_blockwise)
    torch.testing.assert_close(found, attend_windows(plan, q, k, v, None, 0.25))


@pytest.mark.parametrize("case", CASES)
def test_no_tile_reads_the_blocks_of_other_draws(case: str) -> None:
    plan = plan_windows(*CASES[case])
    layout, draws = lay_out(plan), len(plan.kept)
    of_other_draws = len(layout.cells) * (draws - 1)
    assert layout.pairs <= layout.tokens.numel() * (len(layout.readers) - of_other_draws)
