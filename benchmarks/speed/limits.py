"""The structural limit of a setting: the same token counts, by cutting tokens off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from token_merge.nodes.hooks.attention.overrides import OVERRIDE_KEY
from token_merge.tome_core import Stream
from torch import Tensor

from ..attention_watch import find_tokens_dim
from ..settings import Setting, is_finest

MISSING = "benchmark_tokens_cut_off"


def with_tokens_cut_off(model: ModelPatcher, setting: Setting, finest: int) -> ModelPatcher:
    """A clone that does nothing but shorten attention, at the least cost there is.

    No choice of tokens and no gather: the first tokens are taken, and the output is made whole
    again by appending some of itself. What is slower than this pays for its choice.
    """

    def cut(
        n: Tensor, context: Tensor, value: Tensor, extra_options: dict[str, Any]
    ) -> tuple[Tensor, Tensor, Tensor]:
        if not is_finest(extra_options, finest):
            return n, context, value
        queries, keys = setting.remaining(*extra_options["activations_shape"][-2:])
        extra_options[MISSING] = n.shape[1] - queries
        # One contiguous copy where the batch holds several images, a view where it holds one.
        shorter = n[:, :queries].contiguous()
        fewer = shorter if keys == queries else context[:, :keys].contiguous()
        return shorter, fewer, fewer

    def fill(n: Tensor, extra_options: dict[str, Any]) -> Tensor:
        missing = extra_options.pop(MISSING, 0)
        return torch.cat([n, n[:, :missing]], dim=1) if missing else n

    clone = model.clone()
    clone.set_model_attn1_patch(cut)
    clone.set_model_attn1_output_patch(fill)
    return clone


def with_picture_cut_off(model: ModelPatcher, setting: Setting, stream: Stream) -> ModelPatcher:
    """The same for a transformer whose self-attention reads ``stream``, which ends in the picture.

    By the hook that our nodes use there; prompts keep all their tokens.
    """
    grid = stream.grid
    queries, keys = (
        stream.before + left for left in setting.remaining(grid.height, grid.width, grid.frames)
    )

    def cut(
        attention: Callable[..., Tensor],
        q: Tensor,
        k: Tensor,
        v: Tensor,
        heads: int,
        **options: Any,
    ) -> Tensor:
        dim = find_tokens_dim(options)
        if k.shape[dim] != stream.length:
            return attention(q, k, v, heads, **options)  # to the prompt
        fewer = (q.narrow(dim, 0, queries), k.narrow(dim, 0, keys), v.narrow(dim, 0, keys))
        out = attention(*fewer, heads, **options)
        if queries == stream.length:
            return out
        dim = 2 if options.get("skip_output_reshape") else 1
        return torch.cat([out, out.narrow(dim, 0, stream.length - queries)], dim=dim)

    clone = model.clone()
    clone.model_options["transformer_options"][OVERRIDE_KEY] = cut
    return clone
