"""Which of PyTorch's kernels computes attention on a GPU."""

from __future__ import annotations

import torch
from torch import Tensor


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
