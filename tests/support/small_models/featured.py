"""The families that are tried without ``--all``: one for each way to lay out a sequence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from .small_model import SmallModel

FEATURED = {
    "Flux Kontext": "double and single blocks, and references behind that the model counts",
    "SD3.5 medium": "blocks that are not named, some of which read the picture alone",
    "Z-Image": "padding",
    "HiDream-E1": "a reference beside each row, and a prompt after the picture",
    "HiDream-O1 with a reference": "a prompt of which one token is a query",
    "Boogu with references": "refiners, and references before the picture",
    "Lens": "a patch of fixed size, and a mask",
    "Krea 2": "single blocks alone",
    "Stable Cascade C": "a prompt of keys alone",
    "CogVideoX 1.5": "a patch of several frames",
    "Wan with a reference first": "a prompt apart from a video, and references that need a module",
    "Wan S2V": "tokens of several sizes",
    "LTX-2 with guides": "guides, and a sound",
}
"""The value says what each of them stands for."""


def list_featured(families: Iterable[SmallModel]) -> list[SmallModel]:
    """For tests of code that asks for nothing of a family but these features."""
    return [family for family in families if family.name in FEATURED]


def each(families: Iterable[SmallModel]) -> list[Any]:
    """As parameters of a test: those that are not featured are thorough."""
    return [
        pytest.param(family, id=family.name)
        if family.name in FEATURED
        else pytest.param(family, id=family.name, marks=pytest.mark.thorough)
        for family in families
    ]
