"""Tensors that say they are on a GPU, on a machine without one: the code takes a GPU's paths.

Each holds a tensor of the CPU, on which its operations run.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

DEVICE = torch.device("cuda", 1)
"""They say that they are there. It is not the first GPU: what the pack keeps for a GPU must not be
mixed."""

VIEWS = (Tensor.mT, Tensor.T, Tensor.H, Tensor.mH, Tensor.data, Tensor.real)
"""These attributes are tensors; all others are read from the tensor that says it is on a GPU."""


class GpuTensor(Tensor):
    """held: the tensor that stands for it."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> GpuTensor:
        made: GpuTensor = Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
        )
        made.held = held
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(cls, func: Any, *_: Any, **__: Any) -> Any:  # type: ignore[override]
        raise AssertionError(f"{func} was called where nothing computes it")


def read_device(each: Any) -> torch.device | None:
    """The device that an argument names, None where it names none."""
    if isinstance(each, torch.device):
        return each
    named = isinstance(each, str) and each.split(":")[0] in ("cpu", "cuda")
    return torch.device(each) if named else None


def give_back(each: Any, known: dict[int, GpuTensor]) -> Any:
    """A result as a tensor that says it is on a GPU. known: what went in, by what it holds."""
    if not isinstance(each, Tensor) or isinstance(each, GpuTensor):
        return each
    found = known.get(id(each))
    return GpuTensor(each) if found is None else found
