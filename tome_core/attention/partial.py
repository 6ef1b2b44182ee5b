"""Attention over some of the keys by PyTorch's own kernels, with the log of the scores' sum.

With lse = log of the sum of exp(scores), the output over two sets of keys is the mean of both
outputs, weighed by exp(lse). FlashAttention (arXiv 2205.14135, sec. 3.1) builds on this.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import log
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..constants import apart_from_block
from ..gpus import HALF

MASKED = torch.finfo(torch.bfloat16).min / 2
"""It is added to the scores of keys that are not read, see ``find_masked``. It is finite, because a
query may read no key of a part. Its output of that part then means nothing, and joining gives it
the weight 0."""

ALIGNMENT = 8
"""A GPU's kernel takes rows of a multiple of this many numbers."""

MOST_FLASH_CHANNELS = 256
"""PyTorch's FlashAttention takes heads of at most so many channels."""

BFLOAT16_CAPABILITY = (8, 0)
"""It is that of the first NVIDIA GPUs for which PyTorch builds its memory-efficient kernel in
bfloat16."""

MOST_SCORES = 2**25
"""So many scores are in memory at once where no kernel of PyTorch computes them: 128 MiB, and as
much again for each step from scores to shares."""

PartialOutput = tuple[Tensor, Tensor]
"""It has the output over some keys, (B, H, Nq, D), and log(sum(exp(scores))), (B, H, Nq)."""

Kernel = Callable[[Tensor, Tensor, Tensor, Tensor | None, float], PartialOutput]


def attend_part(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float
) -> PartialOutput:
    """Attention over some of the keys, by PyTorch's own kernel where the device has one.

    Args:
        q: (B, H, Nq, D). k, v: (B, H, Nk, D). Any of them may be expanded.
        bias: added to the scores, broadcasts to (B, H, Nq, Nk); finite where it has the type of
            the queries, see ``find_masked`` for keys that are not read.
        scale: of the scores.
    """
    return choose_kernel(q, v, bias)(q, k, v, bias, scale)


def choose_kernel(q: Tensor, v: Tensor, bias: Tensor | None) -> Kernel:
    """The fastest that takes queries, values and a bias like these."""
    if q.device.type == "cpu":
        return attend_part_on_cpu
    aligned = q.shape[3] % ALIGNMENT == 0 == v.shape[3] % ALIGNMENT
    if not aligned or q.device.type != "cuda":
        return attend_part_by_matmul
    if bias is None and q.shape[3] == v.shape[3] and has_flash(q.device, q.dtype, q.shape[3]):
        return attend_part_by_flash
    return attend_part_by_efficient if has_efficient(q.device, q.dtype) else attend_part_by_matmul


@lru_cache(maxsize=32)
@apart_from_block()
def has_flash(device: torch.device, dtype: torch.dtype, channels: int) -> bool:
    """Whether a GPU has the kernel that ``attend_part_by_flash`` calls, for tensors like these.

    PyTorch itself is asked, and answers from what a tensor is like. On AMD's GPUs the kernel is
    another one, whose lse was never seen, so it is not taken.
    """
    if torch.version.hip or dtype not in HALF:
        return False
    # A tensor may say that it is on a GPU where there is none, in tracing for example.
    if not torch.cuda.is_available():
        return channels <= MOST_FLASH_CHANNELS
    return bool(torch.backends.cuda.can_use_flash_attention(_describe(device, dtype, channels)))


@lru_cache(maxsize=32)
@apart_from_block()
def has_efficient(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether a GPU has PyTorch's memory-efficient kernel, for tensors of this type.

    AMD's GPUs are "cuda" too. Only some of them have the kernel, and not in every build of
    PyTorch, so PyTorch itself is asked. It answers from what a tensor is like, not from its values.
    Where it has one, its lse has to be known.
    """
    if dtype not in (torch.float32, *HALF):
        return False
    if torch.version.hip:
        asked = _describe(device, dtype, 64)
        has_kernel = bool(torch.backends.cuda.can_use_efficient_attention(asked))
        return has_kernel and find_lse_unit(device, dtype) > 0.0
    # A tensor may say that it is on a GPU where there is none, in tracing for example.
    if dtype != torch.bfloat16 or not torch.cuda.is_available():
        return True
    return torch.cuda.get_device_capability(device) >= BFLOAT16_CAPABILITY


@lru_cache(maxsize=32)
@apart_from_block()
def find_lse_unit(device: torch.device, dtype: torch.dtype) -> float:
    """What the lse of the memory-efficient kernel is to be multiplied by; 0 where it is no log of
    the scores' sum.

    On AMD's GPUs it is a log of base 2 until PyTorch 2.8, and a natural one with AOTriton 0.11
    (pull request 108 of ROCm/aotriton); before PyTorch 2.6 it has other sides, too. So it is asked
    for once, of scores of 0.
    """
    if not torch.version.hip:
        return 1.0
    x = torch.zeros(1, 1, ALIGNMENT, 64, dtype=dtype, device=device)
    lse = torch.ops.aten._scaled_dot_product_efficient_attention(x, x, x, None, True, scale=1.0)[1]
    if lse.ndim != 3:
        return 0.0
    found = lse[0, 0, 0].item()
    units = (unit for unit in (1.0, log(2)) if abs(found * unit - log(ALIGNMENT)) < 0.01)
    return next(units, 0.0)


def _describe(device: torch.device, dtype: torch.dtype, channels: int) -> Any:
    """What PyTorch is to be asked about: attention without a mask to tensors like these."""
    x = torch.empty(1, 1, ALIGNMENT, channels, dtype=dtype, device=device)
    call = x, x, x, None, 0.0, False
    try:
        return torch.backends.cuda.SDPAParams(*call, False)
    except TypeError:  # PyTorch before 2.5 does not ask whether keys have fewer heads
        return torch.backends.cuda.SDPAParams(*call)  # type: ignore[call-arg]


def attend_part_by_matmul(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float
) -> PartialOutput:
    """As ``attend_part`` on any device, with up to ``MOST_SCORES`` in memory, in float32.

    float16 holds no score beyond 65504.
    """
    images, heads, queries, _ = q.shape
    at_once = max(1, MOST_SCORES // (heads * k.shape[2]))  # queries, each with all keys and heads
    if images * queries <= at_once:
        return _attend_by_matmul(q, k, v, bias, scale)
    if bias is not None:
        bias = bias.expand(images, -1, queries, -1)
    out, lse = v.new_empty(*q.shape[:3], v.shape[3]), q.new_empty(q.shape[:3], dtype=torch.float32)
    rows, size = max(1, at_once // queries), min(at_once, queries)
    for row in range(0, images, rows):
        some = slice(row, row + rows)
        for first in range(0, queries, size):
            part = some, slice(None), slice(first, first + size)
            of_part = None if bias is None else bias[part]
            out[part], lse[part] = _attend_by_matmul(q[part], k[some], v[some], of_part, scale)
    return out, lse


def _attend_by_matmul(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float
) -> PartialOutput:
    scores = (q.float() * scale) @ k.float().mT
    if bias is not None:
        scores = scores + bias
    lse = scores.logsumexp(dim=-1)
    return (scores - lse[..., None]).exp().to(v.dtype) @ v, lse


def attend_part_on_cpu(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float
) -> PartialOutput:
    mask = None if bias is None else _fit(bias, q.dtype)
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, attn_mask=mask, scale=scale
    )


def attend_part_by_flash(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float
) -> PartialOutput:
    """FlashAttention 2. It takes no bias, and is two to three times as fast as the memory-efficient
    kernel.
    """
    assert bias is None
    out, lse, *_ = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, scale=scale)
    return out, lse


def attend_part_by_efficient(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float
) -> PartialOutput:
    """By PyTorch's memory-efficient kernel."""
    if bias is not None:
        bias = _align(_fit(bias, q.dtype)).expand(*q.shape[:3], -1)
    out, lse, _, _ = torch.ops.aten._scaled_dot_product_efficient_attention(
        q, k, v, bias, True, scale=scale
    )
    lse = lse.narrow(-1, 0, q.shape[2])  # the kernel fills lse up to a multiple of 32
    unit = find_lse_unit(q.device, q.dtype)
    return out, lse if unit == 1.0 else lse * unit


def find_masked(dtype: torch.dtype) -> float:
    """What hides a key; float16 holds no number as low as ``MASKED``."""
    return max(MASKED, torch.finfo(dtype).min / 2)


def _fit(bias: Tensor, dtype: torch.dtype) -> Tensor:
    """The bias in the type of the queries, every number finite."""
    return bias if bias.dtype == dtype else bias.clamp(min=find_masked(dtype)).to(dtype)


def _align(bias: Tensor) -> Tensor:
    """Rows of the bias start at a multiple of 16 bytes, as the kernel asks for."""
    if all(stride % ALIGNMENT == 0 for stride in bias.stride()[:-1]):
        return bias
    keys = bias.shape[-1]
    return F.pad(bias, (0, -keys % ALIGNMENT)).narrow(-1, 0, keys)
