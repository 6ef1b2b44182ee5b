"""Constants of a grid and a device: computed once, and kept for all calls, layers and runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")

MOST_KEPT = 64
"""So many values of one function are kept at a time."""


def constant(make: Callable[P, R]) -> Callable[P, R]:
    """Compute what ``make`` returns once for equal arguments, which must be hashable.

    Nobody may write to the tensors that are returned. They are made outside of inference mode, so
    that training can read them too.
    """
    return lru_cache(maxsize=MOST_KEPT)(torch.inference_mode(False)(make))  # type: ignore[return-value]
