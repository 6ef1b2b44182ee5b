"""The table of our kernels: what computes each operator on a GPU, and which tensors it takes."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from ...tome_core.faster_forms import FORMS, Form
from ...tome_core.gpus import HALF
from ...tome_core.grid import TokenGrid
from ...tome_core.layer import Precision
from ...tome_core.merging import Destinations
from ...tome_core.tokens import asks_for_gradients
from ...tome_core.windows import Strips, WindowPlan
from .usable import load_kernel, why_unusable

MOST_HEAD_CHANNELS = 128
"""Our attention kernels hold heads of at most so many channels in shared memory."""

MOST_NUMBERS = 2**31
"""From the first to the last number of an image, memory holds at most so many: between them the
kernels count in 32 bits."""

MOST_QUERIES, MOST_DST, MOST_METRIC_CHANNELS = 128, 64, 256
"""A strip with more of them does not fit into the registers of the program that merges it."""


def why_no_windows(
    device: torch.device,
    dtype: torch.dtype = torch.float16,
    channels: int = 64,
    masked: bool = False,
    precision: Precision = "exact",
) -> str:
    """Why our kernels compute no call of such tensors in local windows, empty where they do.

    It is asked before a call is planned. channels: of a head.
    """
    if masked:
        return "our kernel takes no mask"
    if dtype not in HALF:
        return "our kernel computes in half precision"
    if channels > MOST_HEAD_CHANNELS:
        return f"our kernel takes heads of at most {MOST_HEAD_CHANNELS} channels"
    return why_unusable("windows", device, dtype, channels, False, precision)


def takes_windows(
    plan: WindowPlan, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
) -> bool:
    """Whether our kernels compute attention in local windows of such tensors."""
    compiled_for = q.shape[3], plan.merged is not None, plan.precision
    return mask is None and fits(q, k, v) and _is_usable("windows", q, *compiled_for)


def takes_weighed(q: Tensor, k: Tensor, v: Tensor, sizes: Tensor | None, scale: float) -> bool:
    """Whether our kernel gives keys their weights, faster than extra channels do.

    It computes as many channels as the next power of two. With 64 and 128 it takes 0.5 to 0.6 times
    as long on an H100. With 40 it took 2.4 times as long, when it loaded their numbers one by one;
    what it takes since was not measured.
    """
    return q.shape[3] in (64, 128) and fits(q, k, v) and _is_usable("weighed_keys", q, q.shape[3])


def takes_matching(metric: Tensor, grid: TokenGrid, dst: Destinations, merged: int) -> bool:
    """Whether our kernels merge such tokens among neighbours."""
    return reads(metric) and _is_usable("merging", metric)


def takes_strips(metric: Tensor, strips: Strips) -> bool:
    """Whether our kernel merges the queries of such strips."""
    queries, dst, channels = strips.numbers.shape[1], strips.dst.shape[1], metric.shape[2]
    has_room = queries <= MOST_QUERIES and dst <= MOST_DST and channels <= MOST_METRIC_CHANNELS
    return reads(metric) and has_room and _is_usable("queries", metric)


def fits(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether our attention kernels read such tensors.

    They have no gradients, which training a LoRA asks for.
    """
    return (
        q.dtype in HALF
        and q.dtype == k.dtype == v.dtype
        and q.shape[3] == v.shape[3] <= MOST_HEAD_CHANNELS
        and all(x.stride(3) == 1 and _measure_image(x) < MOST_NUMBERS for x in (q, k, v))
        and not asks_for_gradients((q, k, v))
    )


def _measure_image(x: Tensor) -> int:
    """Numbers from the first to the last of an image in memory. x: (B, H, N, D)."""
    sides = zip(x.shape[1:], x.stride()[1:], strict=True)
    return sum((side - 1) * stride for side, stride in sides)


def reads(metric: Tensor) -> bool:
    """Whether our kernels compare such tokens. metric: (B, N, C)."""
    return metric.dtype in HALF and metric.stride(2) == 1


def _is_usable(kernel: str, x: Tensor, *compiled_for: int | str) -> bool:
    return not why_unusable(kernel, x.device, x.dtype, *compiled_for)


def _compute(kernel: str, verb: str, *arguments: Any) -> Any:
    return getattr(load_kernel(kernel), verb)(*arguments)


TABLE = {
    "windows.attend": Form(
        partial(_compute, "windows", "attend"),
        takes_windows,
        why_no_windows,
    ),
    "windows.merge_queries": Form(
        partial(_compute, "queries", "merge_queries"),
        takes_strips,
        partial(why_unusable, "queries"),
    ),
    "attention.attend_weighed": Form(
        partial(_compute, "weighed_keys", "attend_weighed"),
        takes_weighed,
        lambda device: why_unusable("weighed_keys", device, torch.float16, 64),
    ),
    "merging.match_local": Form(
        partial(_compute, "merging", "match_local"),
        takes_matching,
        partial(why_unusable, "merging"),
    ),
}


def register_kernels() -> None:
    """Make the operators of ``tome_core`` find our kernels."""
    FORMS.update(TABLE)
