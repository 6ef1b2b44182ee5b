"""Our own attention kernel where a GPU can run it, and what is taken elsewhere."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...tome_core import window_attention
from ...tome_core.downsample_settings import DownsampleSettings
from ...tome_core.draws import Draws
from ...tome_core.grid import TokenGrid
from ...tome_core.layer_tokens import LayerTokens
from ...tome_core.merge_settings import MergeSettings
from ...tome_core.planning import plan_layer
from ...tome_core.streams import Stream
from ...tome_core.window_plan import WindowPlan
from .triton_support import explain_failure

MOST_CHANNELS = 128
"""Of a head. More do not fit there."""
MOST_NUMBERS = 2**31
"""From the first to the last of an image in memory: between them the kernel counts in 32 bits."""


def attend_windows(
    plan: WindowPlan, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    """As ``tome_core.attend_windows``."""
    if mask is None and takes(q, k, v, merges=plan.merged is not None):
        out: Tensor = _import_kernel().attend_windows(plan, q, k, v, scale)
        return out
    return window_attention.attend_windows(plan, q, k, v, mask, scale)


def attend_weighed(q: Tensor, k: Tensor, v: Tensor, sizes: Tensor, scale: float) -> Tensor:
    """Attention to keys that stand for ``sizes`` tokens, see ``triton_attention``.

    Only for tensors that ``takes`` says yes to.
    """
    out: Tensor = _import_kernel().attend_weighed(q, k, v, sizes, scale)
    return out


def takes(q: Tensor, k: Tensor, v: Tensor, *, merges: bool = False) -> bool:
    """Whether our kernel takes such tensors and runs on their device.

    It has no gradients, which training a LoRA asks for. merges: whether queries are merged.
    """
    return (
        q.dtype in (torch.float16, torch.bfloat16)
        and q.dtype == k.dtype == v.dtype
        and q.shape[3] == v.shape[3] <= MOST_CHANNELS
        and all(x.stride(3) == 1 and _measure_image(x) < MOST_NUMBERS for x in (q, k, v))
        and not (torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v)))
        and not explain_lack(q.device, q.dtype, q.shape[3], merges)
    )


def _measure_image(x: Tensor) -> int:
    """Numbers from the first to the last of an image in memory. x: (B, H, N, D)."""
    return sum(
        (side - 1) * stride for side, stride in zip(x.shape[1:], x.stride()[1:], strict=True)
    )


def pays(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether our kernel gives keys their weights faster than extra channels do.

    It computes as many channels as the next power of two. With 64 and 128 it takes 0.5 to 0.6 times
    as long on an H100, with 40 it takes 2.4 times as long.
    """
    return q.shape[3] in (64, 128) and takes(q, k, v)


@lru_cache(maxsize=64)
def explain_lack(
    device: torch.device,
    dtype: torch.dtype = torch.float16,
    channels: int = 64,
    merges: bool = False,
) -> str:
    """Why our kernel does not run on a device, empty where it does.

    It is tried once with each type and number of channels, on few tokens. merges: whether queries
    are to be merged, which takes a kernel of its own.
    """
    return explain_failure(
        device, lambda: _works(_import_kernel(), device, dtype, channels, merges)
    )


@cache
def _import_kernel() -> Any:
    """Only where it is called: Triton is not everywhere."""
    return import_module(".triton_attention", __package__)


@torch.inference_mode()
def _works(
    kernel: Any, device: torch.device, dtype: torch.dtype, channels: int, merges: bool
) -> bool:
    """Whether a small picture with a prompt comes out as PyTorch's kernels give it.

    Once in windows, and once with keys that weigh alike.
    """
    draws, stream = Draws((0,), device), Stream(TokenGrid(20, 20), before=3)
    generator = torch.Generator(device).manual_seed(0)
    size = (3, 1, 2, stream.length, channels)
    q, k, v = torch.randn(size, generator=generator, device=device, dtype=dtype)
    sizes, scale = torch.ones(1, stream.length, device=device), channels**-0.5
    metric = stream.take_picture(q).mean(dim=1)
    layer = LayerTokens(stream, lambda: metric, draws, local_window=8, by_number=True)
    plan = plan_layer(MergeSettings() if merges else DownsampleSettings(), layer)
    assert isinstance(plan, WindowPlan)
    pairs = (
        (
            kernel.attend_windows(plan, q, k, v, scale),
            window_attention.attend_windows(plan, q, k, v, None, scale),
        ),
        (kernel.attend_weighed(q, k, v, sizes, scale), F.scaled_dot_product_attention(q, k, v)),
    )
    return all(torch.allclose(found, known, rtol=0.02, atol=0.02) for found, known in pairs)
