"""Bipartite soft matching over all pairs, as in ToMe."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ..constants import constant
from ..draws import Draws
from ..grid import TokenGrid
from .destinations import Destinations
from .plan import MergePlan

LEAST_NORM = 1e-6
"""Tokens with a smaller norm are like no other token. PyTorch's 1e-12 is 0 in float16: a token of
zeros would have a similarity of NaN, which counts as the highest."""


def match_global(metric: Tensor, grid: TokenGrid, dst: Destinations, merged: int) -> MergePlan:
    """Merge the ``merged`` src tokens that are most similar to a dst into it.

    Args:
        metric: (B, N, C) tokens whose cosine similarity decides, for each image alone.
        grid: of the N tokens; this matching compares all of them, wherever they lie.
        dst: the same for all images.
        merged: R, at most so many src tokens are merged.

    Returns a plan with N - min(R, number of src) slots.

    Source: ToMe (arXiv 2210.09461) sec. 3, with the partition of ToMe for SD (arXiv 2303.17604).
    Compares every token with every dst: O(N²·C).
    """
    unit = F.normalize(metric, dim=-1, eps=LEAST_NORM)
    similarity = unit @ unit[:, dst.flat].mT  # (B, N, number of dst)
    best, which = similarity.max(dim=-1)  # (B, N)
    return absorb_most_similar(best, dst.flat[which], dst, merged)


def absorb_most_similar(best: Tensor, nearest: Tensor, dst: Destinations, merged: int) -> MergePlan:
    """The plan that merges the ``merged`` tokens of highest ``best`` into their ``nearest``.

    best: (B, N) similarity to the nearest dst; that of dst tokens is written over. nearest: (B, N)
    int64, the token that is this dst. By selection, not by sorting; nothing waits for the device.
    """
    batch, tokens = best.shape
    best.index_fill_(1, dst.flat, float("-inf"))
    absorbed = best.topk(min(merged, tokens - dst.count), dim=1, sorted=False).indices  # (B, R)
    stays = torch.ones_like(nearest, dtype=torch.bool).scatter_(1, absorbed, False)  # (B, N)
    order, places = shuffle(tokens, best.device)
    left = stays.index_select(1, order).cumsum(dim=1)  # (B, N), tokens left up to this place
    own_slot = left.index_select(1, places) - 1
    assign = torch.where(stays, own_slot, own_slot.gather(1, nearest))
    slots = tokens - absorbed.shape[1]
    first = torch.searchsorted(left, _count_to(slots, batch, best.device))  # (B, M)
    return MergePlan(assign, order.take(first))


@constant
def shuffle(tokens: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """One random order of all tokens, along which slots are numbered (see ``SlotPlan``).

    Returns the order and the place of each token in it, (tokens,) int64 both.
    """
    order = Draws(("slots",), device).draw_order(tokens)
    return order, order.argsort()


@constant
def _count_to(most: int, images: int, device: torch.device) -> Tensor:
    """The numbers from 1 to ``most`` for each image. (images, most) int64."""
    return torch.arange(1, most + 1, device=device).repeat(images, 1)
