"""Every operation that our code asks another device for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from .other_device import OtherDevice, find_place


@dataclass(frozen=True)
class Operation:
    """One operation that our code asked for.

    Args:
        name: of the operation.
        place: file and line of our code.
        results: shape and type of each tensor that it gave.
        numbers: those of the host among its arguments, which a captured graph would keep.
    """

    name: str
    place: str
    results: tuple[tuple[torch.Size, torch.dtype], ...]
    numbers: tuple[float, ...]


class OperationRecord(OtherDevice):
    """Also notes every operation that our code asks for. operations: in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[Operation] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = super().__torch_function__(func, types, args, kwargs)
        place = find_place()
        if place:
            name = getattr(func, "__name__", str(func))
            tensors = [each for each in tree_leaves(out) if isinstance(each, Tensor)]
            leaves = tree_leaves((args, kwargs))
            numbers = tuple(each for each in leaves if isinstance(each, int | float))
            results = tuple((each.shape, each.dtype) for each in tensors)
            self.operations.append(Operation(name, place, results, numbers))
        return out
