"""What the rows of Flux and Wan say beside what all rows say."""

from __future__ import annotations

import pytest
from support.modes import MODES

from .cells import list_pairs
from .kinds import Kind
from .other import Other
from .others.transformers import unet_nodes
from .pictures import sample_once


def pairs_of(others: tuple[Other, ...]) -> list[tuple[Kind, Other]]:
    return [(kind, other) for kind, other in list_pairs() if other in others]


FAILING = tuple(each for each in unet_nodes.OTHERS if each.limits)


@pytest.mark.parametrize(("kind", "other"), pairs_of(FAILING), ids=str)
def test_a_node_that_fails_with_ours_fails_alike_without(kind: Kind, other: Other) -> None:
    (limit,) = other.limits
    with pytest.raises(Exception, match=limit.said) as without:
        sample_once(kind, other, None, "before")
    for order in other.orders:
        with pytest.raises(type(without.value), match=limit.said):
            sample_once(kind, other, MODES[0], order)
