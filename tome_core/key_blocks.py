"""The keys that each tile of queries reads, in blocks: for kernels that read keys by number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, log

import torch
import torch.nn.functional as F
from torch import Tensor

from .drawn_keys import DrawnKeys
from .key_cells import Layout
from .proportional import find_log_sizes
from .window_plan import WindowPlan


@dataclass(frozen=True, eq=False)
class KeyBlocks:
    """Where the numbers of the keys are that each tile reads.

    Args:
        starts: (T, n) int32, where each block begins in a list of numbers.
        logs: (B or 1, n·size) float32, the log of how many tokens each key stands for; -inf at the
            end of a block that is not full. The same for all tiles.
    """

    starts: Tensor
    logs: Tensor


@dataclass(frozen=True)
class _Sets:
    """What the blocks of a plan follow from: nothing that is drawn.

    Args:
        layouts: of the sets, whose keys come one after the other.
        tiles: T, along frames, rows and columns.
        before: numbers in a row of ``WindowPlan.read`` before those of the sets.
        others: keys that every tile reads, whose numbers are at the end of a row.
        read: numbers in a row.
        size: of a block.
    """

    layouts: tuple[Layout, ...]
    tiles: tuple[int, int, int]
    before: int
    others: int
    read: int
    size: int


def list_blocks_of_picture(plan: WindowPlan, size: int) -> KeyBlocks:
    """What the picture's queries read of ``plan.read``. size: of a block."""
    return _list_of_picture(plan, plan.sets, 0, plan.stream.others, size)


def list_near_blocks(plan: WindowPlan, size: int) -> KeyBlocks:
    """What each of them reads for itself: its box, and all tokens that are not of the picture."""
    return _list_of_picture(plan, plan.sets[:1], 0, plan.stream.others, size)


def list_far_blocks(plan: WindowPlan, size: int) -> KeyBlocks:
    """What merged queries read together: the keys out of the box."""
    return _list_of_picture(plan, plan.far, plan.near.numbers.shape[1:].numel(), 0, size)


def _list_of_picture(
    plan: WindowPlan, sets: Sequence[DrawnKeys], before: int, others: int, size: int
) -> KeyBlocks:
    layouts = tuple(keys.layout for keys in sets)
    found = _Sets(layouts, plan.tiles, before, others, plan.read.shape[1], size)
    return _list_blocks(found, plan.device)


def list_blocks_of_others(plan: WindowPlan, size: int) -> KeyBlocks:
    """What all other queries read: they are one tile."""
    assert plan.of_others is not None
    layout, others, read = plan.of_others.layout, plan.stream.others, plan.read.shape[1]
    before = read - others - layout.rows * layout.keys
    return _list_blocks(_Sets((layout,), (1, 1, 1), before, others, read, size), plan.device)


def list_weighed_blocks(sizes: Tensor, size: int) -> KeyBlocks:
    """All keys in their order, for one tile. sizes: (B or 1, Nk) int64, tokens each stands for."""
    keys, logs = sizes.shape[1], find_log_sizes(sizes)
    starts = _list_starts(ceil(keys / size), size, sizes.device)
    if missing := -keys % size:
        nothing = _list_nothing(missing, sizes.device).expand(len(logs), -1)
        logs = torch.cat([logs, nothing], dim=1)  # one operation, where padding is two
    return KeyBlocks(starts, logs)


@lru_cache(maxsize=64)
@torch.inference_mode(False)
def _list_starts(blocks: int, size: int, device: torch.device) -> Tensor:
    return torch.arange(blocks, dtype=torch.int32, device=device)[None] * size


@lru_cache(maxsize=64)
@torch.inference_mode(False)
def _list_nothing(keys: int, device: torch.device) -> Tensor:
    """The logs of as many keys that are not there. (keys,) float32."""
    return torch.full((keys,), -inf, device=device)


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def _list_blocks(sets: _Sets, device: torch.device) -> KeyBlocks:
    tile = torch.cartesian_prod(*(torch.arange(each, device=device) for each in sets.tiles))
    starts, first = [], sets.before
    for layout in sets.layouts:
        row = torch.zeros_like(tile[:, 0])
        for axis in layout.of.rows:
            row = row * sets.tiles[axis] + tile[:, axis]
        starts.append(first + row * layout.keys + tile[:, layout.of.windowed] * layout.step)
        first += layout.rows * layout.keys
    windows = [(layout.window, layout.weight) for layout in sets.layouts]
    if sets.others:
        starts.append(torch.full_like(tile[:, 0], sets.read - sets.others))
        windows.append((sets.others, 1.0))
    return _cut(starts, windows, sets.size)


def _cut(starts: Sequence[Tensor], windows: Sequence[tuple[int, float]], size: int) -> KeyBlocks:
    """starts: (T,) of each set. windows: how many keys a tile reads of it, and their weight."""
    of_blocks, logs = [], []
    for start, (window, weight) in zip(starts, windows, strict=True):
        blocks = ceil(window / size)
        of_blocks.append(start[:, None] + torch.arange(blocks, device=start.device) * size)
        of_keys = torch.full((1, window), log(weight), device=start.device)
        logs.append(F.pad(of_keys, (0, blocks * size - window), value=-inf))
    return KeyBlocks(torch.cat(of_blocks, dim=1).int(), torch.cat(logs, dim=1))
