"""What the tests of transformers share."""

from __future__ import annotations

import pytest
from support.small_models import IMAGES, VIDEOS

REACHED = (*IMAGES, *VIDEOS)


@pytest.fixture
def node_in_turn(family, token_merge, token_downsample):
    """One node for each family, for what does not depend on the node."""
    return (token_merge, token_downsample)[REACHED.index(family) % 2]
