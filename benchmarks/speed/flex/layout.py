"""How queries and keys are laid out in blocks.

All of it depends on the grid alone, so it is computed once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from token_merge.tome_core import WindowPlan
from token_merge.tome_core.cell_sizes import list_log_sizes
from token_merge.tome_core.local_window import Sides
from torch import Tensor

from .block_lists import BLOCK, BY_ALL, BY_NONE, IN_BOXES, BlockLists, list_blocks
from .places import NOWHERE, list_places, pack_places


@dataclass(frozen=True)
class Layout:
    """Blocks of queries: those of each tile, then those of all that is not of the picture.

    Blocks of keys: all that is not of the picture, the picture tile by tile, then each draw. The
    last block of a tile or draw may not be full. It repeats a token, which as a key is read by
    nobody.

    Args:
        tokens: (R, B) int64, the queries of each block, within the stream.
        order: (R,) int64, for each block of queries, the place of its tile in a plan's order; what
            is not of the picture stands behind the tiles.
        last: (1,) int64, the number of what stands there, T.
        within: (R,) int64, which block of its tile it is.
        draws: (R,) int64, the draw that its first head reads.
        blocks: how many blocks of queries a tile has.
        cells: (m·B,) int64, the cell of each key of a draw.
        shared: (n,) int64, within the stream, the keys that are of no draw.
        shared_places: (n,) int32, where they lie in the picture.
        places: (N,) int32, where each token of the picture lies.
        readers: (K·B,) int32, who reads each key.
        log_sizes: (K·B,), the log of how many tokens each key stands for.
        first: (T + 1, 3) int32, frame, row and column where the box of each tile begins.
        sides: of all boxes, frames, height and width.
        full: blocks that a tile reads as a whole. partial: those of which it reads some keys.
    """

    tokens: Tensor
    order: Tensor
    last: Tensor
    within: Tensor
    draws: Tensor
    blocks: int
    cells: Tensor
    shared: Tensor
    shared_places: Tensor
    places: Tensor
    readers: Tensor
    log_sizes: Tensor
    first: Tensor
    sides: Sides
    full: BlockLists
    partial: BlockLists

    def to(self, device: torch.device) -> Layout:
        movable = Tensor, BlockLists
        moved: dict[str, Any] = {
            name: x.to(device) for name, x in vars(self).items() if isinstance(x, movable)
        }
        return replace(self, **moved)

    @property
    def pairs(self) -> int:
        """Of queries and keys that a head computes."""
        counts = (self.full.counts + self.partial.counts)[0]  # (T + 1,), alike for all draws
        return int(counts[self.order].sum()) * BLOCK**2


def lay_out(plan: WindowPlan) -> Layout:
    """The layout for all plans of this plan's grid and box. plan: on the CPU."""
    stream, window, draws = plan.stream, plan.window, len(plan.kept)
    tiled, is_tiled = _fill_blocks(window.queries)  # (T, b, B)
    others, is_other = _fill_blocks(window.others[None])  # (1, o, B)
    cells, is_cell = _fill_blocks(torch.arange(plan.smaller.tokens)[None])  # (1, m, B)
    tiles, blocks = tiled.shape[:2]
    behind = torch.zeros(others.shape[1], dtype=torch.int64)

    places = list_places(stream.grid)
    in_picture = torch.cat([torch.zeros_like(others).flatten(), tiled.flatten() - stream.before])
    readers = [
        torch.where(is_other, BY_ALL, BY_NONE).flatten(),
        torch.where(is_tiled & _find_first_times(tiled), IN_BOXES, BY_NONE).flatten(),
        *(torch.where(is_cell, draw, BY_NONE).flatten() for draw in range(draws)),
    ]
    sizes = list_log_sizes(stream.grid, plan.smaller, 1, torch.float32, cells.device)
    log_sizes = torch.cat([torch.zeros(len(in_picture)), *[sizes[cells.flatten()]] * draws])
    first, last = places[window.near[:, [0, -1]] - stream.before].unbind(dim=1)  # (T, 3)
    frames, height, width = (last - first + 1)[0].tolist()
    whole, partly = list_blocks(plan, torch.cat(readers[:2]), in_picture, is_cell.sum(dim=2)[0])
    dealt = plan.deal(torch.arange(tiles)[:, None])
    draw_of_tile = torch.arange(draws).repeat_interleave(torch.tensor([len(d) for d in dealt]))
    return Layout(
        tokens=torch.cat([tiled.flatten(0, 1), others[0]]),
        order=torch.cat([torch.arange(tiles).repeat_interleave(blocks), behind + tiles]),
        last=torch.tensor([tiles]),
        within=torch.cat([torch.arange(blocks).repeat(tiles), torch.arange(len(behind))]),
        draws=torch.cat([draw_of_tile.repeat_interleave(blocks), behind]),
        blocks=blocks,
        cells=cells.flatten(),
        shared=torch.cat([others.flatten(), tiled.flatten()]),
        shared_places=pack_places(places[in_picture]),
        places=pack_places(places),
        readers=torch.cat(readers).int(),
        log_sizes=log_sizes,
        first=torch.cat([first, torch.full((1, 3), NOWHERE)]).int(),
        sides=(frames, height, width),
        full=whole,
        partial=partly,
    )


def _fill_blocks(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """Rows as whole blocks; the last number of a row fills its last block.

    (t, n) -> (t, b, B), and which of these are not filled up, bool.
    """
    length = numbers.shape[1]
    place = torch.arange(-(-length // BLOCK) * BLOCK)
    filled = numbers[:, place.clamp(max=length - 1)]
    own = (place < length).expand_as(filled)
    return filled.unflatten(1, (-1, BLOCK)), own.unflatten(1, (-1, BLOCK))


def _find_first_times(tiled: Tensor) -> Tensor:
    """Where a tile names a token for the first time. (T, b, B) -> bool"""
    tokens, order = tiled.flatten(1).sort(dim=1, stable=True)
    first = torch.ones_like(tokens, dtype=torch.bool)
    first[:, 1:] = tokens.diff(dim=1) != 0
    return torch.zeros_like(first).scatter_(1, order, first).view_as(tiled)
