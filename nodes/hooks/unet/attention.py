"""Self-attention of a UNet, where its keys have sizes or are read in local windows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ....tome_core.attention.key_weights import add_sizes_to_mask
from ..attention.backend import Backend, accept_containers
from ..attention.call import Attention, AttentionCall, Container, peek, take
from ..run.state import find_call
from .call import UNetCall


@accept_containers
@torch.compiler.disable
def attend(
    attention: Attention,
    q: Tensor | Container,
    k: Tensor | Container,
    v: Tensor | Container,
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
    backend = Backend(call.preferred or attention, call.override)
    running = call.find_block(options)
    keys = peek(k).shape[1]
    window = running.take_window(keys) if running else None
    sizes = running.take_sizes(keys) if running else None
    if window is None and sizes is None:
        return backend(q, k, v, heads, mask, *args, **kwargs)
    q, k, v = take(q), take(k), take(v)
    tensors = AttentionCall.read(q, k, v, heads, mask, *args, **kwargs)
    if window:
        return tensors.run_in_windows(window)
    assert sizes is not None
    if backend.choose_weighting(tensors) == "mask":
        # The tensors keep their shape: another node's attention gets them as without us.
        return backend(q, k, v, heads, add_sizes_to_mask(mask, sizes, q.dtype), *args, **kwargs)
    return backend.run(tensors, sizes, call.model.run.report)
