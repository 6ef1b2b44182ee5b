"""The keys that each tile of queries reads, in blocks: for kernels that read keys by number."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, log

import torch
import torch.nn.functional as F
from torch import Tensor

from ...tome_core.attention.key_weights import find_log_sizes
from ...tome_core.constants import constant
from ...tome_core.windows import WindowGeometry


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


def list_picture_blocks(geometry: WindowGeometry, size: int) -> KeyBlocks:
    """What the picture's queries read of ``WindowPlan.read``. size: keys of a block."""
    return _list_blocks(geometry, 0, len(geometry.of_picture), size)


def list_near_blocks(geometry: WindowGeometry, size: int) -> KeyBlocks:
    """What each of them reads for itself: its box, and all tokens that are not of the picture."""
    return _list_blocks(geometry, 0, 1, size)


def list_far_blocks(geometry: WindowGeometry, size: int) -> KeyBlocks:
    """What merged queries read together: the keys out of the box."""
    return _list_blocks(geometry, 1, len(geometry.of_picture), size, others=False)


def list_blocks_of_others(geometry: WindowGeometry, size: int) -> KeyBlocks:
    """What all other queries read: they are one tile."""
    last = len(geometry.cells.layouts)
    return _list_blocks(geometry, last - 1, last, size, tiles=(1, 1, 1))


@constant
def _list_blocks(
    geometry: WindowGeometry,
    first: int,
    end: int,
    size: int,
    others: bool = True,
    tiles: tuple[int, int, int] | None = None,
) -> KeyBlocks:
    """Blocks of the sets from ``first`` to ``end`` - 1.

    others: whether all tokens that are not of the picture are read, too; their numbers are last.
    """
    tiles, layouts = tiles or geometry.tiles, geometry.cells.layouts
    device, behind = geometry.queries.device, len(geometry.others)
    bounds = [0]
    for layout in layouts:
        bounds.append(bounds[-1] + layout.rows * layout.keys)
    starts, logs = [], []

    def add(start: Tensor, keys: int, weight: float) -> None:
        """start: (T,), where the keys of each tile begin."""
        blocks = ceil(keys / size)
        starts.append(start[:, None] + torch.arange(blocks, device=device) * size)
        of_keys = torch.full((1, keys), log(weight), device=device)
        logs.append(F.pad(of_keys, (0, blocks * size - keys), value=-inf))

    for layout, bound in zip(layouts[first:end], bounds[first:end], strict=True):
        add(bound + layout.find_starts(tiles, device), layout.keys_read, layout.weight)
    if others and behind:
        add(torch.full_like(starts[0][:, 0], bounds[-1]), behind, 1.0)
    return KeyBlocks(torch.cat(starts, dim=1).int(), torch.cat(logs, dim=1))


def list_weighed_blocks(sizes: Tensor, size: int) -> KeyBlocks:
    """All keys in their order, for one tile. sizes: (B or 1, Nk) int64, tokens each stands for."""
    keys, logs = sizes.shape[1], find_log_sizes(sizes)
    starts = _list_starts(ceil(keys / size), size, sizes.device)
    if missing := -keys % size:
        nothing = _list_nothing(missing, sizes.device).expand(len(logs), -1)
        logs = torch.cat([logs, nothing], dim=1)  # one operation, where padding is two
    return KeyBlocks(starts, logs)


@constant
def _list_starts(blocks: int, size: int, device: torch.device) -> Tensor:
    """(1, blocks) int32."""
    return torch.arange(blocks, dtype=torch.int32, device=device)[None] * size


@constant
def _list_nothing(keys: int, device: torch.device) -> Tensor:
    """The logs of as many keys that are not there. (keys,) float32."""
    return torch.full((keys,), -inf, device=device)
