"""A transformer whose self-attention is computed in another way than the nodes have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from comfy.model_patcher import ModelPatcher
from token_merge.nodes.hooks.attention_call import OVERRIDE_KEY, Attention, AttentionCall
from token_merge.tome_core import Stream
from token_merge.tome_core.tokens import join_heads
from torch import Tensor

Attend = Callable[[Attention, AttentionCall], Tensor]


def replace_self_attention(model: ModelPatcher, stream: Stream, attend: Attend) -> ModelPatcher:
    """A clone in which ``attend`` computes attention over ``stream``, and no other.

    attend: gets the attention function and its call, returns (B, H, L, D).
    """

    def override(attention: Attention, *args: Any, **options: Any) -> Tensor:
        call = AttentionCall.read(*args, **options)
        if call.k.shape[2] != stream.length:
            return attention(*args, **options)  # to the prompt
        out = attend(attention, call)
        return out if call.skip_output_reshape else join_heads(out)

    clone = model.clone()
    clone.model_options["transformer_options"][OVERRIDE_KEY] = override
    return clone
