"""Counts what runs inside: which kernels, on whose behalf, and how much memory they hold."""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any, Literal

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from ...loading import ROOT
from .kernels import Kernel, list_tensors, read_kernel

Place = Literal["ours", "attention", "rest"]
"""ours: planning, gathering and copying back around attention. attention: the fused kernels and
what ComfyUI's attention function does around them. rest: projections, MLP and everything else."""

OURS = tuple(str(ROOT / folder) for folder in ("nodes", "tome_core"))
COMFYUI_ATTENTION = "/comfy/ldm/modules/attention.py"
ATTENTION_FUNCTIONS = ("attention_", "_reshape_qkv_to_heads")


@dataclass
class Memory:
    """Bytes in use above what was there before, by torch's storages; views hold none."""

    in_use: int = 0
    peak: int = 0
    _known: set[int] = field(default_factory=set)

    def note(self, given: list[Tensor], made: list[Tensor]) -> None:
        """given, made: of one operation. What is given and not known was there before."""
        for x in given:
            self._add(x, 0)
        for x in made:
            self._add(x, x.untyped_storage().nbytes())
        self.peak = max(self.peak, self.in_use)

    def _add(self, x: Tensor, size: int) -> None:
        storage = x.untyped_storage()
        address = storage._cdata
        if address not in self._known:
            self._known.add(address)
            self.in_use += size
            weakref.finalize(storage, self._free, address, size)

    def _free(self, address: int, size: int) -> None:
        self._known.discard(address)
        self.in_use -= size


class Count(TorchDispatchMode):
    """kernels: in order, each with its place. memory: what the operations inside took.

    attention_peak: the most bytes in use in the places "ours" and "attention", above those before
    the first of these.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kernels: list[tuple[Place, Kernel]] = []
        self.memory = Memory()
        self.attention_peak = 0
        self._before_attention: int | None = None
        self._left = False

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.prim.device.default:  # a question, which the decomposition cannot take
            return func(*args, **kwargs)
        if _is_composite(func):
            with self:
                return func.decompose(*args, **kwargs)
        in_use = self.memory.in_use
        out = func(*args, **kwargs)
        self.memory.note(list_tensors((args, kwargs)), list_tensors(out))
        kernel = read_kernel(func, args, kwargs, out)
        if kernel:
            place = self._find_place(kernel)
            self.kernels.append((place, kernel))
            if place != "rest":
                if self._before_attention is None:
                    self._before_attention = in_use
                above = self.memory.in_use - self._before_attention
                self.attention_peak = max(self.attention_peak, above)
        return out

    def leave(self, *_: Any) -> None:
        """What follows is attention to something else, such as the prompt: it is of the rest."""
        self._left = True

    def enter(self, *_: Any) -> None:
        """End of what ``leave`` began."""
        self._left = False

    def _find_place(self, kernel: Kernel) -> Place:
        if self._left:
            return "rest"
        return "attention" if kernel.is_attention else _find_caller()


@cache
def _is_composite(operation: OpOverload) -> bool:
    """Whether it consists of other operations, which are then counted in its place."""
    key = "CompositeImplicitAutograd"
    return torch._C._dispatch_has_kernel_for_dispatch_key(operation.name(), key)


def _find_caller() -> Place:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file, function = frame.f_code.co_filename, frame.f_code.co_name
        if file.startswith(OURS):
            return "ours"
        if "/comfy/" in file:
            inside = file.endswith(COMFYUI_ATTENTION) and function.startswith(ATTENTION_FUNCTIONS)
            return "attention" if inside else "rest"
        frame = frame.f_back
    return "rest"
