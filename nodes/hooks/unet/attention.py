"""Self-attention of a UNet, where its keys have sizes or are read in local windows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ....tome_core.proportional import add_sizes_to_mask
from ..attention_call import Attention, AttentionCall, AttentionFunction
from ..model_call import find_call
from .call import UNetCall


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
    """ComfyUI's attention, with what the block's input patch left for it.

    Proportional attention, ToMe (arXiv 2210.09461) eq. 1.
    """
    options = kwargs.get("transformer_options") or {}
    call: UNetCall | None = find_call(options)
    if call is None:
        return attention(q, k, v, heads, mask, *args, **kwargs)
    function = AttentionFunction(attention, call.earlier)
    running = call.find_running(options)
    window = running.take_window(k.shape[1]) if running else None
    if window:
        whole = AttentionCall.read(q, k, v, heads, mask, *args, **kwargs)
        return whole.reshape_output(whole.run_in_windows(window))
    sizes = running.take_sizes(k.shape[1]) if running else None
    if sizes is None:
        return function(q, k, v, heads, mask, *args, **kwargs)
    tensors = AttentionCall.read(q, k, v, heads, mask, *args, **kwargs)
    if function.choose_weighting(tensors) == "mask":
        # The tensors keep their shape: another node's attention gets them as without us.
        return function(q, k, v, heads, add_sizes_to_mask(mask, sizes, q.dtype), *args, **kwargs)
    return tensors.reshape_output(function.run(tensors, sizes, call.model.run.report))
