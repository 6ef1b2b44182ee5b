"""Which of PyTorch's kernels computes attention on a GPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..flex.attention import Kernel
from ..flex.layout import Layout


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """FlashAttention without a mask, else the kernel that PyTorch calls "efficient".

    PyTorch itself would choose for a machine without a GPU.
    """
    aten = torch.ops.aten
    if attn_mask is None:
        flash = aten._scaled_dot_product_flash_attention
        out: Tensor = flash(q, k, v, dropout_p, is_causal, scale=scale)[0]
        return out
    mask = attn_mask.expand(*q.shape[:3], k.shape[2])
    efficient = aten._scaled_dot_product_efficient_attention
    out = efficient(q, k, v, mask, False, dropout_p, is_causal, scale=scale)[0]
    return out


KERNELS = {"scaled_dot_product_attention": attend}


def make_flex_kernel(layout: Layout) -> Kernel:
    """In place of ``flex_attention``: a kernel that computes as many pairs of queries and keys.

    Each query reads the mean number of keys. They come first, so what is read of memory is less
    than in truth, where all keys are read by some query.
    """

    pairs = layout.pairs

    def attend_as_many(q: Tensor, k: Tensor, v: Tensor, scale: float, **_: Any) -> Tensor:
        keys = pairs // q.shape[2]
        flash = torch.ops.aten._scaled_dot_product_flash_attention
        out: Tensor = flash(q, k[:, :, :keys], v[:, :, :keys], scale=scale)[0]
        return out

    return attend_as_many
