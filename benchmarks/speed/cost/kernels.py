"""What one operation of PyTorch costs a GPU: kernels, bytes and floating-point operations."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from torch import Tensor
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from . import own_kernels

NOT_LAUNCHED = {"lift_fresh", "_unsafe_view", "_reshape_alias"}
"""With views, with what begins with "empty" or "new_empty", and with what gives no numbers, these
are left out: they compute nothing."""

ATTENTION = (
    "_scaled_dot_product",
    "_flash_attention_forward",
    "_efficient_attention_forward",
    "_cudnn_attention_forward",
    own_kernels.ATTEND,
)
"""How the names of PyTorch's attention kernels begin, and of ours."""

HEAD_SIZES = (32, 64, 96, 128, 192, 256)
"""For which FlashAttention 2 has kernels; others compute as many channels as the next of these."""

QUERIES_AT_ONCE = 128
"""FlashAttention 2 computes as many rows of scores as the next multiple of this."""

SEVERAL = {
    "constant_pad_nd": 2,
    "index_add": 2,
    "index_copy": 2,
    "index_fill": 2,
    "index_put": 2,
    "masked_fill": 2,
    "native_group_norm": 2,
    "scatter": 2,
    "scatter_add": 2,
    "scatter_reduce": 2,
    "topk": 2,
}
"""Operations that launch more than one kernel: a copy or a fill, and their own."""

SHORT_SORT, SHORT_SORT_KERNELS, AROUND_LONG_SORT = 4096, 3, 4
"""PyTorch sorts up to 4096 numbers in one kernel, with a copy and a fill before it. Longer ones
take a radix sort: a kernel for each 8 bits of a number, and four around them."""

PICKS = {"gather", "index_select", "index", "take", "embedding"}
"""They read as many numbers of their first tensor as they write."""

FILLS = {"copy_", "fill_", "zero_"}
"""They do not read what they write over."""

PUTS = {"index_copy_", "index_put_", "index_add_", "index_fill_", "scatter_", "scatter_add_"}
"""They write as many numbers into a tensor as they are given, and do not touch the others."""


@dataclass(frozen=True)
class Kernel:
    """name: of the operation. launches: kernels of the GPU. bytes: read and written. flops: of
    matrix products and attention; everything else waits for memory and not for arithmetic.
    """

    name: str
    launches: int
    bytes: int
    flops: int

    @property
    def is_attention(self) -> bool:
        return self.name.startswith(ATTENTION)


def read_kernel(
    operation: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
) -> Kernel | None:
    """What the call of ``operation`` that gave ``out`` costs, None where nothing is launched."""
    name = operation._schema.name.split("::")[1]
    is_ours = name in (own_kernels.ATTEND, own_kernels.MERGE)
    written = list_tensors(args[0] if is_ours else out)
    if operation.is_view or name in NOT_LAUNCHED or name.startswith(("empty", "new_empty")):
        return None
    if not any(each.numel() for each in written):
        return None
    given = list_tensors(args[1] if is_ours else (args, kwargs))
    kernel = Kernel(name, _count_launches(name, given), _count_bytes(name, given, written), 0)
    formula = flop_registry.get(operation.overloadpacket)
    if formula is None:
        return kernel
    flops = formula(*args, **kwargs, out_val=out)
    if kernel.is_attention:
        *_, queries, channels = given[0].shape
        flops = flops * _round_channels(channels) // channels
        if "flash" in name:
            flops = flops * (queries + -queries % QUERIES_AT_ONCE) // queries
    return Kernel(name, kernel.launches, kernel.bytes, flops)


def count_stored(x: Tensor) -> int:
    """Bytes of the numbers that lie in memory: an expanded side, or what overlaps, counts once."""
    sides = list(zip(x.shape, x.stride(), strict=True))
    numbers = prod(length for length, stride in sides if stride or length == 0)
    reach = 1 + sum((length - 1) * stride for length, stride in sides)
    return min(numbers, reach) * x.element_size()


def _count_bytes(name: str, given: list[Tensor], written: list[Tensor]) -> int:
    read = list(map(count_stored, given))
    if name in PUTS:
        return 2 * sum(read[1:])
    out = sum(map(count_stored, written))
    if name in FILLS:
        return out + sum(read[1:])
    if name in PICKS:
        read[0] = min(read[0], out)
    return out + sum(read)


def _count_launches(name: str, given: list[Tensor]) -> int:
    if name == "sort":
        if given[0].shape[-1] <= SHORT_SORT:
            return SHORT_SORT_KERNELS
        return AROUND_LONG_SORT + given[0].element_size()
    return SEVERAL.get(name, 1)


def _round_channels(channels: int) -> int:
    return next((size for size in HEAD_SIZES if channels <= size), channels)


def list_tensors(values: Any) -> list[Tensor]:
    """All tensors in nested values."""
    return [each for each in tree_leaves(values) if isinstance(each, Tensor)]
