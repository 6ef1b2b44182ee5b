"""Tensors that say they are on a GPU, on a machine without one: the code takes a GPU's paths.

Each holds another tensor, on which its operations run: one without numbers ("meta"), so that the
largest shapes need no memory, or one of the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

DEVICES = {"meta": torch.device("cuda", 1), "cpu": torch.device("cuda", 2)}
"""By what is held. Neither is the first: what the pack keeps for a GPU must not be mixed."""

VIEWS = (Tensor.mT, Tensor.T, Tensor.H, Tensor.mH, Tensor.data, Tensor.real)
"""Attributes that are tensors; all others are read from the tensor that says it is on a GPU."""


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
            device=DEVICES[held.device.type],
        )
        made.held = held
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(cls, func: Any, *_: Any, **__: Any) -> Any:  # type: ignore[override]
        raise AssertionError(f"{func} was called where nothing computes it")


Kernels = Mapping[str, Callable[..., Any]]
"""What runs in place of functions of these names."""


class StandInGpu(TorchFunctionMode):
    """held: the device of the tensors that are held. kernels: those of attention there."""

    def __init__(self, held: torch.device, kernels: Kernels) -> None:
        super().__init__()
        self.held, self.kernels = held, kernels
        self.device = DEVICES[held.type]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", str(func))
        if name == "__get__" and func.__self__ not in VIEWS:
            return func(*args, **kwargs)
        leaves = tree_leaves((args, kwargs))
        here = [each for each in leaves if isinstance(each, GpuTensor)]
        if not here and self.device not in map(read_device, leaves):
            return func(*args, **kwargs)
        taken, named = tree_map(self._take, (args, kwargs))
        out = self.kernels.get(name, func)(*taken, **named)
        # What an operation in place gives is the tensor that it was given.
        known = {id(each.held): each for each in here}
        return tree_map(lambda each: give_back(each, known), out)

    def _take(self, each: Any) -> Any:
        if isinstance(each, GpuTensor):
            return each.held
        return self.held if read_device(each) == self.device else each

    def move(self, module: nn.Module) -> None:
        """Let the weights, which lie on ``held``, say that they are on the GPU."""
        for part in module.modules():
            for place in (part._parameters, part._buffers):
                for name, value in place.items():
                    if value is not None:
                        place[name] = GpuTensor(value.detach())  # type: ignore[assignment]


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
