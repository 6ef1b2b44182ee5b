"""Self-attention of a UNet in which a merged key weighs as much as the tokens it stands for."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from ...tome_core.attention import mask_with_log_sizes
from .attention_call import CALL_KEY, LEFT_OUT, Attention, AttentionCall
from .run_state import UNetCall


@torch.compiler.disable
def attend(
    attention: Attention,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    heads: int,
    mask: Tensor | None = None,
    *args: Any,
    **kwargs: Any,
) -> Tensor:
    """ComfyUI's attention, with the sizes that the block's input patch left for it.

    Proportional attention, ToMe (arXiv 2210.09461) eq. 1.
    """
    call: UNetCall | None = (kwargs.get("transformer_options") or {}).get(CALL_KEY)
    if call is None:
        return attention(q, k, v, heads, mask, *args, **kwargs)
    inner = partial(call.earlier, attention) if call.earlier else attention
    sizes = call.key_sizes.pop("next", None)
    if sizes is None or sizes.shape[1] != k.shape[1]:
        return inner(q, k, v, heads, mask, *args, **kwargs)
    tensors = AttentionCall.of(q, k, v, heads, mask, *args, **kwargs)
    if not tensors.takes_sizes(attention, call.earlier):
        call.run.report.note(LEFT_OUT)
        return inner(q, k, v, heads, mask, *args, **kwargs)
    if tensors.takes_mask:
        # The tensors keep their shape: another node's attention sees them as ever.
        mask = mask_with_log_sizes(mask, sizes, q.dtype)
        return inner(q, k, v, heads, mask, *args, **kwargs)
    return tensors.returned(tensors.run_with_sizes(inner, sizes))
