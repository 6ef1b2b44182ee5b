"""Our nodes beside each other node: it works, or it is left alone or refused with a reason."""

from __future__ import annotations

import re

import pytest
import torch
from torch import Tensor

from .cells import Cell
from .pictures import Picture, paint, sample_once


def test_our_nodes_and_the_other_both_do_what_they_do_alone(cell: Cell, seen: set[Cell]) -> None:
    limit = cell.limit
    if limit and limit.outcome == "refused":
        with pytest.raises(Exception, match=limit.said):
            sample_both(cell)
    else:
        check_reduction(cell)
        check_other(cell)
    check_unpatched(cell)
    seen.add(cell)


def check_reduction(cell: Cell) -> None:
    """Ours does what the table says, and its error is about that without the other node."""
    both, other, ours, unpatched, limit = (
        sample_both(cell),
        sample_other(cell),
        sample_ours(cell),
        sample_unpatched(cell),
        cell.limit,
    )
    assert both.latent.isfinite().all()
    news = _name_reasons(both) - _name_reasons(ours)
    if limit is None:
        assert both.done
        assert not news, news
    else:
        assert bool(both.done) == (limit.outcome == "works in part"), both.done
        assert any(limit.said in line for line in (*news, *(line for _, line in both.done)))
    if not both.done:
        assert torch.equal(both.latent, other.latent)
        return
    error = distance(both.latent, other.latent)
    without = distance(ours.latent, unpatched.latent)
    assert 0 < error < cell.other.most_error * without, f"{error:.3f}, {without:.3f} without it"


def _name_reasons(picture: Picture) -> set[str]:
    """Why something was left out. Without numbers, for layers may have other sizes."""
    return {re.sub(r"\d+", "#", line) for _, line in picture.left}


def check_other(cell: Cell) -> None:
    """The other node has its effect, with ours and without, in both orders alike."""
    other, both = cell.other, sample_both(cell)
    hidden = bool(cell.limit and cell.limit.hides_other)
    for with_it, without, changes in (
        (sample_other(cell), sample_unpatched(cell), other.changes_picture),
        (both, sample_ours(cell), other.changes_picture and not hidden),
    ):
        if other.changes_picture or not cell.limit:
            assert differs(with_it, without) == changes
        assert (with_it.calls < without.calls) == other.skips_calls
    if other.same_in_both_orders:
        for order in other.orders:
            picture = sample_once(cell.kind, other, cell.mode, order).latent
            assert torch.equal(picture, both.latent), f"not the same with our nodes {order} it"


def check_unpatched(cell: Cell) -> None:
    """The unpatched model, sampled anew, is what it was before our nodes and the other came."""
    anew = paint(cell.kind, cell.other.remove_last(), None, "before").latent
    assert torch.equal(anew, sample_unpatched(cell).latent)


def sample_both(cell: Cell) -> Picture:
    return sample_once(cell.kind, cell.other, cell.mode, cell.order)


def sample_other(cell: Cell) -> Picture:
    return sample_once(cell.kind, cell.other, None, "before")


def sample_ours(cell: Cell) -> Picture:
    return sample_once(cell.kind, cell.other.remove_last(), cell.mode, "before")


def sample_unpatched(cell: Cell) -> Picture:
    return sample_once(cell.kind, cell.other.remove_last(), None, "before")


def distance(one: Tensor, other: Tensor) -> float:
    """Relative to ``other``."""
    return float((one - other).norm() / other.norm())


def differs(one: Picture, other: Picture) -> bool:
    """Pictures of different sizes differ."""
    return not torch.equal(one.latent, other.latent)
