"""Our nodes beside each other node: it works, or it is left alone or refused with a reason."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from .cells import Cell
from .pictures import Picture, paint, sample_both, sample_other, sample_ours, sample_plain


def test_our_nodes_and_the_other_both_do_what_they_do_alone(cell: Cell, seen: set[Cell]) -> None:
    limit = cell.limit
    if limit and limit.outcome == "refused":
        with pytest.raises((ValueError, RuntimeError), match=limit.said):
            sample_both(cell.kind, cell.other, cell.mode, cell.order)
    else:
        check_reduction(cell)
        check_other(cell)
    check_plain(cell)
    seen.add(cell)


def check_reduction(cell: Cell) -> None:
    """Ours does what the table says, and the picture stays as near as without the other."""
    kind, other, mode, limit = cell.kind, cell.other, cell.mode, cell.limit
    both, alone = sample_both(kind, other, mode, cell.order), sample_other(kind, other)
    ours, plain = sample_ours(kind, mode), sample_plain(kind)
    assert both.latent.isfinite().all()
    news = set(both.left) - set(ours.left)
    if limit is None:
        assert both.done
        assert not news
    else:
        assert bool(both.done) == (limit.outcome == "works in part")
        assert any(limit.said in line for _, line in news), both.left
    if not both.done:
        assert torch.equal(both.latent, alone.latent)
        return
    error = distance(both.latent, alone.latent)
    assert 0 < error < other.most_error * distance(ours.latent, plain.latent), error


def check_other(cell: Cell) -> None:
    """The other node has its effect, with ours and without, in both orders alike."""
    kind, other, mode = cell.kind, cell.other, cell.mode
    both = sample_both(kind, other, mode, cell.order)
    for with_it, without in (
        (sample_other(kind, other), sample_plain(kind)),
        (both, sample_ours(kind, mode)),
    ):
        if other.changes_picture or not cell.limit:
            assert differs(with_it, without) == other.changes_picture
        assert (with_it.calls < without.calls) == other.skips_calls
    if other.same_in_both_orders:
        for order in other.orders:
            picture = sample_both(kind, other, mode, order).latent
            assert torch.equal(picture, both.latent), f"not the same with our nodes {order} it"


def check_plain(cell: Cell) -> None:
    """The plain model, sampled anew, is what it was before our nodes and the other came."""
    before = sample_plain(cell.kind).latent
    assert torch.equal(paint(cell.kind, None, None, "before").latent, before)


def distance(one: Tensor, other: Tensor) -> float:
    """Relative to ``other``."""
    return float((one - other).norm() / other.norm())


def differs(one: Picture, other: Picture) -> bool:
    """Pictures of different sizes differ."""
    return not torch.equal(one.latent, other.latent)
