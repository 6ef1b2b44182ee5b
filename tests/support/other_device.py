"""Tensors that say they are on a GPU, on a machine without one.

They hold a tensor of the CPU, on which every operation is really computed. So the code takes the
paths of a GPU, with results that can be compared, and what a GPU would have to wait for is seen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from .gpu_tensor import DEVICE, VIEWS, GpuTensor, give_back, read_device

CPU = torch.device("cpu")
PACK = Path(__file__).parents[2]
OURS = tuple(str(PACK / folder) for folder in ("nodes", "tome_core"))

WAITS = {"item", "tolist", "nonzero", "argwhere", "masked_select", "unique", "equal", "numpy"}
WAITS |= {f"__{name}__" for name in ("bool", "int", "float", "index", "array", "contains")}
MAKERS = {"tensor", "as_tensor", "asarray", "new_tensor"}
"""These make a tensor of numbers of the host."""


@dataclass(frozen=True)
class Crossing:
    """kind: "wait", "copy" or "mixed devices". place: file and line of our code."""

    kind: str
    operation: str
    place: str


class OtherDevice(TorchFunctionMode):
    """Computes with ``GpuTensor`` tensors; notes what our code would make a GPU wait for.

    crossings: in the order in which they came.
    """

    def __init__(self) -> None:
        super().__init__()
        self.crossings: list[Crossing] = []

    def __enter__(self) -> OtherDevice:
        # Else PyTorch would look for the GPU where a tensor is made on it.
        self._was_initialized = torch.cuda._initialized
        torch.cuda._initialized = True
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        torch.cuda._initialized = self._was_initialized

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", str(func))
        if name == "__get__" and func.__self__ not in VIEWS:
            return func(*args, **kwargs)
        call = _Call(name, tree_leaves((args, kwargs)))
        kind = call.find_kind()
        place = find_place() if kind else ""
        if place:
            self.crossings.append(Crossing(kind, name, place))
        taken = tree_map(_take, (args, kwargs))
        out = KERNELS.get(name, func)(*taken[0], **taken[1])
        if call.target != DEVICE:
            return out
        known = {id(each.held): each for each in call.here}
        return tree_map(lambda each: give_back(each, known), out)


@dataclass(frozen=True)
class _Call:
    """leaves: all arguments of one operation."""

    name: str
    leaves: list[Any]

    @property
    def here(self) -> list[GpuTensor]:
        return [each for each in self.leaves if isinstance(each, GpuTensor)]

    @property
    def elsewhere(self) -> list[Tensor]:
        """Without numbers: PyTorch lets them go anywhere, and nothing waits for them."""
        tensors = [each for each in self.leaves if isinstance(each, Tensor) and each.ndim]
        return [each for each in tensors if not isinstance(each, GpuTensor)]

    @property
    def target(self) -> torch.device:
        """Where the result lies: where the call says, else where a tensor of it does."""
        said = [each for each in map(read_device, self.leaves) if each]
        if self.name in ("cpu", "numpy"):
            said = [CPU]
        return said[0] if said else DEVICE if self.here else CPU

    def find_kind(self) -> str:
        """Empty where nothing crosses."""
        masks = [each for each in self.here[1:] if each.dtype == torch.bool]
        waits = self.name in WAITS or (self.name == "where" and len(self.leaves) == 1)
        if self.here and (waits or (self.name == "__getitem__" and masks)):
            return "wait"
        arrives = self.target == DEVICE and (self.elsewhere or self.name in MAKERS)
        if (self.here and self.target == CPU) or (not self.here and arrives):
            return "copy"
        return "mixed devices" if self.here and self.elsewhere else ""


def _efficient(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, lse: bool, *, scale: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What PyTorch documents of ``_scaled_dot_product_efficient_attention``.

    It refuses what the GPU's kernel refuses: float64, rows that are not aligned, fewer heads of
    keys, and a bias that is no multiple of 8 numbers from row to row. A bias that is expanded over
    rows, heads or images is accepted: ``check_supported`` of PyTorch's kernel_forward.h asks only
    that its strides are multiples, and 0 is one.
    """
    assert q.dtype in (torch.float32, torch.float16, torch.bfloat16)
    assert q.dtype == k.dtype == v.dtype
    assert q.shape[1] == k.shape[1] == v.shape[1]
    assert all(each.shape[3] % 8 == 0 for each in (q, k, v))
    scores = (q.float() @ k.float().mT) * scale
    if bias is not None:
        assert bias.shape == scores.shape, "the kernel does not broadcast"
        assert bias.dtype == q.dtype
        aligned = all(stride % 8 == 0 for stride in bias.stride()[:3])
        assert aligned, "rows of the bias are not aligned"
        scores = scores + bias
    sums = scores.logsumexp(-1)
    out = ((scores - sums[..., None]).exp() @ v.float()).to(v.dtype)
    padded = nn.functional.pad(sums, (0, -sums.shape[-1] % 32), value=torch.inf)
    return out, padded, torch.tensor(0), torch.tensor(0)


def _flash(q: Tensor, k: Tensor, v: Tensor, *, scale: float) -> tuple[Tensor, ...]:
    """What ``mha_fwd`` checks, in flash_api.cpp of PyTorch's FlashAttention.

    It takes no bias, half precision alone, a multiple of 8 channels up to 256, as many of the
    values as of the keys, and rows that begin at a multiple of 16 bytes.
    """
    assert q.dtype in (torch.float16, torch.bfloat16)
    assert q.dtype == k.dtype == v.dtype
    assert q.shape[3] == k.shape[3] == v.shape[3] <= 256
    assert q.shape[1] == k.shape[1] == v.shape[1]
    assert q.shape[0] == k.shape[0] == v.shape[0]
    assert q.shape[3] % 8 == 0
    for each in (q, k, v):
        assert each.stride(3) == 1
        assert all(stride % 8 == 0 for stride in each.stride()[:3])
    scores = (q.float() @ k.float().mT) * scale
    sums = scores.logsumexp(-1)
    out = ((scores - sums[..., None]).exp() @ v.float()).to(v.dtype)
    return out, sums, None, None, 0, 0, None, None, None


KERNELS = {
    "_scaled_dot_product_efficient_attention": _efficient,
    "_scaled_dot_product_flash_attention": _flash,
}


def _take(each: Any) -> Any:
    if isinstance(each, GpuTensor):
        return each.held
    return CPU if read_device(each) else each


def find_place() -> str:
    """The line of ours that called, empty where somebody else did."""
    for frame in _walk():
        file = frame.f_code.co_filename
        if file.startswith(OURS):
            return f"{Path(file).name}:{frame.f_lineno}"
        watching = file == __file__ or frame.f_code.co_name == "__torch_function__"
        if "/torch/" not in file and "/einops/" not in file and not watching:
            return ""
    return ""


def _walk() -> Iterator[Any]:
    frame = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def move(value: Any) -> Any:
    """A copy of nested values whose tensors are on the other device."""
    return tree_map(
        lambda each: GpuTensor(each.clone()) if isinstance(each, Tensor) else each, value
    )


@contextmanager
def moved(module: nn.Module) -> Iterator[None]:
    """While it lasts, the module's weights are on the other device."""
    kept = [
        (place, name, value)
        for part in module.modules()
        for place in (part._parameters, part._buffers)
        for name, value in place.items()
        if value is not None
    ]
    try:
        for place, name, value in kept:
            place[name] = GpuTensor(value.detach())
        yield
    finally:
        for place, name, value in kept:
            place[name] = value
